import Foundation
import MusterKit
import TestSupport
import Testing

@Suite struct SyncTests {
  /// The words about each list.
  private func sync(_ demo: Demo) async throws -> (lists: [String: String], items: [String]) {
    let output = try await demo.say("sync", as: "ana").split(separator: "\n").map(String.init)
    var lists: [String: String] = [:]
    for line in output {
      guard let match = line.wholeMatch(of: /(\w+) +(up to date|stale|none) *(.*)/) else { continue }
      lists[String(match.1)] = match.2 == "up to date" ? "up to date" : String(match.3)
    }
    return (lists, output.filter { $0.hasPrefix("  ") })
  }

  @Test func `says which lists are stale, and why`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana", "ben")
      let first = try await sync(demo)
      #expect(first.lists.count == CacheCollection.allCases.count && first.items.isEmpty)
      let friends = try await demo.say("friends", as: "ana").split(separator: "\n").count - 1
      #expect(first.lists["friends"] == "read \(friends) items" && first.lists["profile"] == "read 1 item")
      #expect(try await sync(demo).lists.values.allSatisfy { $0 == "up to date" })

      _ = try await demo.say("events create 'Night walk' 'tomorrow 22:00' --invite ana", as: "ben")
      _ = try await demo.say("requests accept fatima", as: "ana")
      _ = try await demo.say("answer studio declined", as: "ana")
      try await eventually { try await demo.say("inbox", as: "ana").contains("Night walk") }
      let second = try await sync(demo)
      #expect(second.lists["events"] == "1 new, 1 changed")
      #expect(second.lists["friends"] == "1 new" && second.lists["friendRequests"] == "1 gone")
      #expect(second.lists["notifications"]?.hasSuffix("new") == true && second.lists["blocks"] == "up to date")
      for line in [
        "  + Night walk", "  + fatima", "  - fatima",
        "  ~ Open studio all day: counts.declined, counts.going, myStatus",
      ] {
        #expect(second.items.contains(line), "\(second.items)")
      }
      #expect(try await sync(demo).lists.values.allSatisfy { $0 == "up to date" })

      let json = try await demo.say("sync --json", as: "ana")
      let verdicts = try JSONDecoder.muster().decode([String: Verdict].self, from: Data(json.utf8))
      #expect(verdicts.count == 9 && verdicts["events"]?.invalidate == false)
      let folder = demo.home.appending(path: "cache/muster/ana")
      let names = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".json") }
      #expect(names.count == 9)
      for name in names {
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.appending(path: name).path)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
      }
      // A damaged copy counts as none, and logging out leaves none.
      let events = try #require(names.first { $0.hasSuffix("/events.json") })
      try Data("{".utf8).write(to: folder.appending(path: events))
      #expect(try await sync(demo).lists["events"]?.hasPrefix("read ") == true)
      // As another user's login does.
      let login = ["login", "ben", "--password-stdin"]
      _ = try await demo.ctl(login, as: "ana", input: Demo.password + "\n")
      #expect(try await sync(demo).lists.values.allSatisfy { $0.hasPrefix("read ") })
      _ = try await demo.say("logout", as: "ana")
      #expect(try FileManager.default.subpathsOfDirectory(atPath: folder.path).allSatisfy { !$0.hasSuffix(".json") })
    }
  }
}
