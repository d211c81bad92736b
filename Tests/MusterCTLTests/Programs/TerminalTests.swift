import Foundation
import TestSupport
import Testing

@testable import musterctl

/// The output in a terminal.
@Suite struct TerminalTests {
  /// Runs a command to its end.
  private func show(
    _ line: String, in demo: Demo, columns: Int = 80, environment: [String: String] = [:]
  ) async throws -> String {
    let terminal = try demo.terminal(line, as: "ana", columns: columns, environment: environment)
    #expect(try await terminal.exitStatus() == 0, "\(terminal.output)")
    return terminal.output
  }

  @Test func `colors are for terminals that want them`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      #expect(try await show("events", in: demo).contains("\u{1B}[1mHouse concert\u{1B}[0m"))
      #expect(try await !show("events --no-color", in: demo).contains("\u{1B}"))
      for environment in [["NO_COLOR": "1"], ["TERM": "dumb"]] {
        #expect(try await !show("events", in: demo, environment: environment).contains("\u{1B}"))
      }
      #expect(try await show("events", in: demo, environment: ["NO_COLOR": ""]).contains("\u{1B}"))
      #expect(try await !demo.say("events", as: "ana").contains("\u{1B}"))
    }
  }

  @Test func `tables fit the terminal`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      let whole = try await demo.say("events", as: "ana")
      for columns in [400, 80, 60, 40, 20] {
        let table = try await show("events --no-color", in: demo, columns: columns)
        for line in table.split(separator: "\n") { #expect(DisplayWidth.of(line) <= columns) }
        #expect(table.split(separator: "\n").count == whole.split(separator: "\n").count)
      }
      #expect(try await show("events --no-color", in: demo, columns: 400) == whole)
      #expect(try await show("events --no-color", in: demo, columns: 60).contains("喫茶店めぐり"))
      // The columns after a wide title line up.
      let friends = try await show("friends --no-color", in: demo).split(separator: "\n")
      let starts = friends.compactMap { line in
        line.firstRange(of: /FRIENDS|\d{4}-/).map { DisplayWidth.of(line[..<$0.lowerBound]) }
      }
      #expect(starts.count == friends.count && friends.count > 5 && Set(starts).count == 1)
    }
  }

  @Test func `texts of other users cannot control the terminal`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      let hostile = #"E'\u001B[2J\u009B31m\u202E\u0007\r\U000E0061x'"#
      _ = try await demo.say("sync", as: "ana")
      try await demo.execute(
        """
        UPDATE users SET display_name = \(hostile), bio = \(hostile) WHERE username IN ('ana', 'ben', 'cleo');
        UPDATE events SET title = \(hostile) || title, note = \(hostile) || E'\\nmore', location_name = \(hostile);
        UPDATE user_stamps SET events = clock_timestamp();
        """)
      let lines = [
        "events", "events past", "events show climbing", "events guests climbing", "friends", "requests", "inbox",
        "whoami", "find ben", "events edit climbing --title x", "answer studio maybe", "requests accept fatima",
        "events show nothing", "answer e going", "sync",
      ]
      try await demo.logIn("ben")
      for format in ["--no-color", "--json"] {
        let watch = try demo.terminal("watch --count 1 --changes \(format)", as: "ana")
        try await watch.waitForOutput("Watching as")
        _ = try await demo.say("events create 'Night walk' 'tomorrow 22:00' --invite ana", as: "ben")
        #expect(try await watch.exitStatus() == 0)
        #expect(watch.output.contains("invited you"))
        #expect(watch.output.unicodeScalars.allSatisfy { $0 == "\n" || $0.isSafe }, "\(watch.output)")
      }
      let changes = try await demo.say("sync", as: "ana")
      #expect(changes.unicodeScalars.allSatisfy { $0 == "\n" || $0.isSafe })
      #expect(changes.contains(#"  ~ \u{1B}[2J"#), "\(changes)")
      for line in lines {
        let terminal = try demo.terminal("\(line) --no-color", as: "ana")
        _ = try await terminal.exitStatus()
        let unsafe = terminal.output.unicodeScalars.filter { $0 != "\n" && !$0.isSafe }
        #expect(unsafe.isEmpty && !terminal.output.isEmpty, "\(line): \(unsafe.map(\.value))")
        let json = try await demo.ctl(line.shellWords + ["--json"], as: "ana")
        #expect((json.output + json.errors).unicodeScalars.allSatisfy { $0 == "\n" || $0.isSafe }, "\(line)")
      }
      #expect(try await demo.say("events", as: "ana").contains(#"\u{1B}[2J\u{009B}31m\u{202E}\u{07}\r\u{000E0061}x"#))
    }
  }

  @Test func `cancelling an event asks first`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      for (answer, status) in [("\n", Int32(1)), ("no\n", 1), ("maybe\ny\n", 0)] {
        let terminal = try demo.terminal("events cancel climbing", as: "ana")
        try await terminal.waitForOutput("Cancel “Climbing at the old quarry”, ")
        terminal.type(answer)
        #expect(try await terminal.exitStatus() == status, "\(terminal.output)")
      }
      #expect(try await demo.say("events", as: "ana").contains(/Climbing at the old quarry +cancelled/))
    }
  }
}
