import Foundation
import MusterKit
import TestSupport
import Testing

extension String {
  fileprivate func count(of text: String) -> Int { components(separatedBy: text).count - 1 }
}

@Suite struct WatchTests {
  @Test func `prints notifications as they arrive, and ends with Ctrl-C`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana", "ben")
      let watch = try demo.terminal("watch --changes --no-color", as: "ana")
      try await watch.waitForOutput("Watching as Ana Duarte (ana). Ctrl-C ends it.\n")
      _ = try await demo.say("events create 'Night walk' 'tomorrow 22:00' --invite ana", as: "ben")
      try await watch.waitForOutput("  Ben Okafor invited you to “Night walk”.\n")
      _ = try await demo.say("events edit 'night walk' --time 'tomorrow 23:00'", as: "ben")
      try await watch.waitForOutput(" 22:00 → 23:00)\n")
      try await watch.waitForOutput("changed: events")
      watch.type("\u{3}")
      #expect(try await watch.exitStatus() == 0)
      #expect(!watch.output.contains("musterctl:"))
    }
  }

  @Test func `misses nothing while the service restarts`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana", "ben")
      let watch = try demo.terminal("watch --count 2", as: "ana")
      try await watch.waitForOutput("Watching as")
      _ = try await demo.say("events create 'Night walk' 'tomorrow 22:00' --invite ana", as: "ben")
      try await watch.waitForOutput("invited you")
      // The notification is in the inbox before the stream can connect again: only a resumed stream has it.
      let next = try await demo.restart { url in
        let elsewhere = ["MUSTER_SERVER": url]
        for user in ["ana", "ben"] {
          let login = ["login", user, "--password-stdin"]
          let result = try await demo.ctl(login, as: user, input: Demo.password + "\n", environment: elsewhere)
          #expect(result.status == 0, "\(result.errors)")
        }
        let edit = ["events", "edit", "night walk", "--title", "Moon walk"]
        #expect(try await demo.ctl(edit, as: "ben", environment: elsewhere).status == 0)
        try await eventually {
          try await demo.ctl(["inbox"], as: "ana", environment: elsewhere).output.contains("has changed: the title")
        }
      }
      defer { next.signal(SIGKILL) }
      #expect(try await watch.exitStatus(within: .seconds(180)) == 0)
      #expect(watch.output.contains("title: Night walk → Moon walk"), "\(watch.output)")
      #expect(watch.output.count(of: "invited you") == 1)
    }
  }

  @Test func `--json prints a line for each event`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana", "ben")
      let watch = try await Program(
        Program.path("musterctl"), ["watch", "--json", "--count", "1"], environment: demo.environment(as: "ana"))
      try await watch.waitForOutput("Watching")
      _ = try await demo.say("events create 'Night walk' 'tomorrow 22:00' --invite ana", as: "ben")
      #expect(try await watch.exitStatus() == 0)
      let lines = watch.standardOutput.split(separator: "\n")
      #expect(lines.count == 1)
      let event = try JSONDecoder.muster().decode(JSONValue.self, from: Data(lines[0].utf8))
      #expect(event["event"] == .string("notification") && event["data"]?["type"] == .string("event-invited"))
      // As the service sends it, with members that are null.
      let inbox = try await demo.say("inbox --json --limit 1", as: "ana")
      let list = try JSONDecoder.muster().decode(JSONValue.self, from: Data(inbox.utf8))
      guard case .array(let items) = list["items"] else { throw Unexpected(inbox) }
      #expect(event["data"] == items.first && event["data"]?["readAt"] == .null, "\(lines[0])")
    }
  }

  @Test func `ends with the session`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      let watch = try demo.terminal("watch", as: "ana")
      try await watch.waitForOutput("Watching as")
      let end = try await Program(
        Program.path("muster"), ["sessions", "end", "--user", "ana"], environment: ["DATABASE_URL": demo.databaseURL])
      #expect(try await end.exitStatus() == 0)
      #expect(try await watch.exitStatus() == 3, "\(watch.output)")
      #expect(try await demo.ctl(["watch"], as: "ana").status == 3)
    }
  }
}
