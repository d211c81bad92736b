import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// `muster queue` as a process.
@Suite struct QueueCommandTests {
  private func queue(_ app: TestApp, _ arguments: String...) async throws -> Program {
    let program = try await Program(
      Program.path("muster"), ["queue"] + arguments, environment: ["DATABASE_URL": app.databaseURL], in: "/tmp")
    _ = try await program.exitStatus()
    return program
  }

  @Test func `a notice that fails alone three times in fan-out is listed, and can be retried`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.refuseFiling(of: "Bad")
      for title in ["Bad", "Good"] {
        try await app.service.change { $0.notify(ana.userID, about: .invitationWithdrawn(.new(), title)) }
      }
      for failures in 1...3 {
        #expect(try await queue(app, "list", "--dead").standardOutput == "")
        _ = try await FanOut.step(in: app.service)
        let waiting = try await queue(app, "list", "--type", "invitation-withdrawn").standardOutput
          .split(separator: "\n")
        // The other notice was fanned out.
        #expect(waiting.count == (failures < 3 ? 1 : 0))
        #expect(waiting.allSatisfy { $0.contains("attempts \(failures)") && $0.contains("not this one") })
      }
      let dead = try await queue(app, "list", "--dead").standardOutput.split(separator: "\n").map(String.init)
      #expect(dead.count == 1)
      let line = try #require(dead.first)
      for part in ["notices/", "invitation-withdrawn", "attempts 3", "not this one"] { #expect(line.contains(part)) }
      #expect(!line.contains("Bad"), "a list shows no content")
      let stats = try JSON(parsing: try await queue(app, "stats", "--json").standardOutput.utf8)
      #expect(stats["types"]["invitation-withdrawn"]["dead"].int == 1)
      try await app.database.execute("DROP TRIGGER refuses ON notifications")
      let name = try #require(line.split(separator: " ").first.map(String.init))
      #expect(try await queue(app, "retry", name).standardOutput == "retried 1\n")
      #expect(try await FanOut.step(in: app.service).notices == 1)
      #expect(try await ana.get("notifications")["items"].array.map { $0["title"].string } == ["Bad", "Good"])
      try await app.takeNotifications()
    }
  }

  @Test func `an operator can count, list, retry and purge rows`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(3)
      try await app.database.execute(
        """
        INSERT INTO mails (type, user_id, payload) VALUES ('mail-password-changed', md5('r1')::uuid, '{}')
        """)
      try await app.enqueue(rounds: 0..<3, to: 3)
      let recorder = Recorder { push, device in
        if device.token == "1-1" { throw DeliveryFailure.refused }
        if device.token == "2-1" { throw DeliveryFailure(description: "down", remedy: .later(seconds: 3600)) }
      }
      _ = try await app.worker(recorder).step()
      try await app.enqueue(rounds: 3..<4, to: 3)
      try await app.database.execute("UPDATE deliveries SET type = 'event-invited'")
      // As in fan-out, no row is due earlier than those in front of it.
      try await app.database.execute(
        "UPDATE deliveries SET due_at = now() + interval '1 hour' WHERE recipient_id = md5('r2')::uuid")
      try await app.database.execute(
        """
        UPDATE deliveries SET lease = uuid_v7(), leased_until = now() + interval '1 hour'
        WHERE recipient_id = md5('r3')::uuid
        """)
      try await app.database.execute(
        "UPDATE deliveries SET due_at = now() - interval '90 seconds' WHERE recipient_id = md5('r1')::uuid")

      let stats = try await queue(app, "stats", "--json")
      #expect(try await stats.exitStatus() == 0, "\(stats.standardError)")
      let json = try JSON(parsing: stats.standardOutput.utf8)
      // Due: one row of the first reader. Waiting: the row that was tried, and three rows behind it.
      let invitations = json["types"]["event-invited"]
      #expect(["due", "waiting", "inFlight", "dead"].map { invitations[$0].int } == [1, 4, 1, 3])
      #expect(json["types"]["mail-password-changed"]["due"].int == 1)
      #expect(json["total"]["due"].int == 2)
      let figures = try await QueueStats.read(in: app.service)
      #expect((90..<300).contains(figures.oldestDueSeconds ?? 0))
      let text = try await queue(app, "stats").standardOutput
      #expect(text.contains("in flight 1") && text.contains("oldest due: "))

      let waiting = try await queue(app, "list", "--type", "event-invited", "--json").standardOutput
      let rows = try JSON(parsing: waiting.utf8).array
      #expect(rows.count == 6)
      #expect(rows.compactMap { $0["lastError"].string } == ["down"])
      let all = try await queue(app, "list").standardOutput
      #expect(all.split(separator: "\n").count == 7)
      #expect(!all.contains("@") && !all.contains("2-1 "))
      #expect(try await queue(app, "list", "--limit", "2").standardOutput.split(separator: "\n").count == 2)

      let mine = try await queue(app, "list", "--user", "reader1").standardOutput.split(separator: "\n")
      #expect(mine.count == 2 && mine.contains { $0.contains("mail-password-changed") }, "\(mine)")

      let dead = try await queue(app, "list", "--dead").standardOutput.split(separator: "\n").map(String.init)
      #expect(dead.count == 3 && dead.allSatisfy { $0.contains("refused") && $0.contains("attempts 1") })
      let number = try #require(dead[0].split(separator: " ").first.map(String.init))
      #expect(number.hasPrefix("deliveries/"))
      #expect(try await queue(app, "retry", number).standardOutput == "retried 1\n")
      #expect(try await app.countDead() == 2)
      #expect(try await queue(app, "purge", "--dead", "--older-than", "1").standardOutput == "purged 0\n")
      #expect(try await queue(app, "retry", "--all", "--type", "event-updated").standardOutput == "retried 0\n")
      try await app.database.execute(
        """
        UPDATE deliveries SET died_at = now() - interval '2 days'
        WHERE id = (SELECT min(id) FROM deliveries WHERE died_at IS NOT NULL)
        """)
      #expect(try await queue(app, "purge", "--dead", "--older-than", "1").standardOutput == "purged 1\n")
      // One dead letter, and the row that failed with those behind it.
      #expect(try await queue(app, "retry", "--all").standardOutput == "retried 5\n")
      #expect(try await app.countDead() == 0)
      #expect(try await app.value("SELECT count(*) FROM deliveries WHERE due_at > now() AND leased_until IS NULL") == 0)
      #expect(try await queue(app, "purge", "--dead").standardOutput == "purged 0\n")
      for wrong in [
        ["retry"], ["retry", "--all", "mails/1"], ["retry", "1"], ["retry", "deliveries/1", "--type", "test"],
        ["purge"], ["list", "--limit", "0"], ["list", "--type", "nonsense"], ["retry", "--all", "--type", "other"],
      ] {
        let program = try await Program(
          Program.path("muster"), ["queue"] + wrong, environment: ["DATABASE_URL": app.databaseURL], in: "/tmp")
        #expect(try await program.exitStatus() == 64, "\(wrong)")
      }
      for (missing, name) in [
        (["retry", "deliveries/999999"], "deliveries/999999"), (["list", "--user", "nobody"], "user"),
      ] {
        let program = try await Program(
          Program.path("muster"), ["queue"] + missing, environment: ["DATABASE_URL": app.databaseURL], in: "/tmp")
        #expect(try await program.exitStatus() == 1, "\(missing)")
        #expect(program.standardError.contains(name), "\(program.standardError)")
      }
      try await app.forgetDeliveries()
      try await app.database.execute("DELETE FROM mails")
    }
  }
}
