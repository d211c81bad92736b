import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// `muster reports` as a process.
@Suite struct ReportsCommandTests {
  private func muster(_ app: TestApp, _ arguments: String...) async throws -> Program {
    let program = try await Program(
      Program.path("muster"), arguments, environment: ["DATABASE_URL": app.databaseURL], in: "/tmp")
    _ = try await program.exitStatus()
    return program
  }

  @Test func `an operator can list and close reports`() async throws {
    try await TestApp.run { app in
      let (ana, ben, cleo) = (try await app.signUp("ana"), try await app.signUp("ben"), try await app.signUp("cleo"))
      #expect(try await muster(app, "reports", "list").standardOutput == "")
      // Text that would clear the operator's screen, and one that would look like another line.
      try await ben.editProfile(#"{"bio": "Pills\u001b[2J\u009b2J\u202e"}"#)
      let first = try await ana.report(ben, text: "One\\nTwo").json["id"].string ?? ""
      let second = try await ben.report(cleo, reason: "hate").json["id"].string ?? ""

      let list = try await muster(app, "reports", "list")
      #expect(try await list.exitStatus() == 0, "\(list.standardError)")
      let lines = list.standardOutput.split(separator: "\n").map(String.init)
      try #require(lines.count == 8, "\(list.standardOutput)")
      #expect(lines[0].hasPrefix("\(first)  ") && lines[0].hasSuffix("  spam  user \(ben.id), ben  by ana"))
      #expect(
        lines[1...4] == [
          #"  bio: Pills\u{1B}[2J\u{009B}2J\u{202E}"#, "  displayName: Ben", "  username: ben", #"  report: One\nTwo"#,
        ])
      #expect(lines[5].hasPrefix("\(second)  ") && lines[5].hasSuffix("  hate  user \(cleo.id), cleo  by ben"))
      #expect(lines[6...] == ["  displayName: Cleo", "  username: cleo"])
      let none = try await muster(app, "reports", "picture", first)
      #expect(try await none.exitStatus() == 1 && none.standardError.contains("there is no picture in report"))
      let limited = try await muster(app, "reports", "list", "--limit", "1", "--json").standardOutput
      let one = try JSON(parsing: limited.utf8)
      #expect(one.array.map { $0["id"].string } == [first])
      #expect(one[0]["text"].string == "One\nTwo" && one[0]["snapshot"]["username"].string == "ben")

      let closing = try await muster(app, "reports", "close", first, "--note", "bio removed")
      #expect(closing.standardOutput == "closed \(first)\n", "\(closing.standardError)")
      let open = try JSON(parsing: try await muster(app, "reports", "list", "--json").standardOutput.utf8)
      #expect(open.array.map { $0["id"].string } == [second])
      let all = try JSON(parsing: try await muster(app, "reports", "list", "--all", "--json").standardOutput.utf8)
      #expect(all.array.map { $0["id"].string } == [second, first])
      #expect(all[1]["closingNote"].string == "bio removed" && all[1]["closedAt"].string != nil)
      #expect(try await muster(app, "reports", "list", "--all").standardOutput.contains("\n  note: bio removed\n"))
      for id in [first, Report.ID.new().description] {
        let refused = try await muster(app, "reports", "close", id)
        #expect(try await refused.exitStatus() == 1)
        #expect(refused.standardError.contains("there is no open report \(id)"))
        #expect(refused.standardError.split(separator: "\n").count == 1)
      }
      try await ben.deleteAccount()
      let left = try await muster(app, "reports", "list").standardOutput
      #expect(left.hasPrefix("\(second)  ") && left.contains("user \(cleo.id), cleo  by a deleted account\n"))
    }
  }

  @Test func `wrong usage is refused`() async throws {
    try await TestApp.run { app in
      let long = String(repeating: "x", count: Report.maximumText + 1)
      for wrong in [["list", "--limit", "0"], ["close"], ["close", "1"]] {
        let program = try await Program(
          Program.path("muster"), ["reports"] + wrong, environment: ["DATABASE_URL": app.databaseURL], in: "/tmp")
        #expect(try await program.exitStatus() == 64, "\(wrong)")
      }
      let refused = try await muster(app, "reports", "close", Report.ID.new().description, "--note", long)
      #expect(try await refused.exitStatus() == 64)
    }
  }

  /// As the runbook in docs/operations.md says.
  @Test func `phones read again what an operator has removed with SQL`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      try await ana.editProfile(#"{"bio": "Pills"}"#)
      let event = try await ana.createEvent("Party", inviting: [ben])["id"].string ?? ""
      try await ana.edit(event, #"{"note": "Pills"}"#)
      let stale = try await app.stale(among: [ana, ben]) {
        try await app.database.execute("UPDATE users SET bio = NULL WHERE username = 'ana'")
        try await app.database.execute("UPDATE events SET note = NULL, url = NULL WHERE id = \(Event.ID(event))")
        #expect(try await muster(app, "stamps", "move").exitStatus() == 0)
      }
      #expect(stale["ana"]?.contains(.profile) == true && stale["ben"]?.contains(.events) == true)
      #expect(try await ben.get("events/\(event)")["note"] == .null)
      #expect(try await ben.get("users/\(ana.id)")["bio"] == .null)
      try await app.takeNotifications()
    }
  }
}
