import Postgres
import Testing

@testable import App

/// The fate of reports when accounts are deleted, and later.
@Suite struct ReportForgettingTests {
  private func housekeep(_ app: TestApp) async throws {
    await app.keepHouse()
  }

  private func letReportsExpire(_ app: TestApp) async throws {
    try await app.database.execute("UPDATE reports SET expires_at = expires_at - interval '90 days'")
  }

  @Test func `reports of a deleted account stay without its name and words`() async throws {
    try await TestApp.run { app in
      let (ana, ben, cleo) = (try await app.signUp("ana"), try await app.signUp("ben"), try await app.signUp("cleo"))
      try await ana.report(ben, text: "I am Ana")
      try await app.closeReports()
      try await ana.report(cleo, reason: "hate", text: "Ana again")
      try await ana.deleteAccount()
      let entries = try await app.reports()
      #expect(entries.map(\.owner) == ["cleo", "ben"])
      #expect(entries.map(\.reason) == ["hate", "spam"])
      #expect(entries.allSatisfy { $0.reporter == nil && $0.text == nil })
      let traces: Int? = try await app.value(
        "SELECT count(*) FROM reports AS r WHERE r::text ILIKE '%ana%' OR r::text LIKE '%' || \(ana.id) || '%'")
      #expect(traces == 0)
    }
  }

  @Test func `reports about a deleted account go at once if they are closed, otherwise when they are`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try await ana.createEvent("Party", inviting: [ben])["id"].string ?? ""
      try await ben.report(ana)
      try await app.closeReports()
      try await ben.report(ana, reason: "hate")
      try await ben.report(event: event)
      try await ana.report(ben)
      try await ana.deleteAccount()
      // Those about her are still there to be judged.
      let entries = try await app.reports().filter { $0.reporter == "ben" }
      #expect(entries.map(\.reason) == ["other", "hate"])
      #expect(entries.allSatisfy { $0.owner == nil && $0.expiresAt == nil })
      #expect(entries.map { $0.snapshot["title"] } == ["Party", nil])
      #expect(entries.map { $0.snapshot["username"] } == [nil, "ana"])
      try await housekeep(app)
      #expect(try await app.reports().count == 3)
      // However long no operator reads them.
      try await app.database.execute("UPDATE reports SET created_at = created_at - interval '1 year'")
      try await housekeep(app)
      #expect(try await app.reports().count == 3)
      try await app.closeReports()
      try await housekeep(app)
      #expect(try await app.reports().map(\.owner) == ["ben"])
      try await app.takeNotifications()
    }
  }

  @Test func `a closed report is deleted after 90 days, or at once if the account is gone`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let cleo = try await app.signUp("cleo")
      let event = try await ana.createEvent("Party", inviting: [ben])["id"].string ?? ""
      try await ben.report(cleo)
      try await ben.report(ana)
      try await ana.deleteAccount()
      // He still sees the event, whose creator is gone already.
      try await ben.report(event: event)
      #expect(try await app.reports().allSatisfy { $0.expiresAt == nil })
      try await app.closeReports()
      try await housekeep(app)
      #expect(try await app.reports().map(\.owner) == ["cleo"])
      try await letReportsExpire(app)
      try await housekeep(app)
      #expect(try await app.reports().isEmpty)
      try await app.takeNotifications()
    }
  }

  @Test func `a report during a deletion, from or about the account, is found by the deletion`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"], queuesWrites: false) { app in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<12 {
          group.addTask {
            let (ana, ben) = (try await app.signUp("ana\(number)"), try await app.signUp("ben\(number)"))
            async let deleted: APIResponse = ana.deleteAccount()
            async let about = ben.send("POST", "reports", #"{"userId": "\#(ana.id)", "reason": "spam"}"#)
            async let from = ana.send(
              "POST", "reports", #"{"userId": "\#(ben.id)", "reason": "spam", "text": "Mine"}"#)
            let statuses = (try await about.status, try await from.status)
            _ = try await deleted
            #expect(statuses.0 == 201 && [201, 401].contains(statuses.1), "\(statuses)")
          }
        }
        try await group.waitForAll()
      }
      let entries = try await app.reports()
      #expect(entries.allSatisfy { $0.expiresAt == nil })
      try await app.closeReports()
      try await housekeep(app)
      // None is closed as if the account were still there.
      #expect(try await app.reports().allSatisfy { $0.owner != nil })
      #expect(entries.allSatisfy { $0.reporter != nil || $0.text == nil })
    }
  }

  @Test func `two users who have reported each other delete their accounts at once`() async throws {
    try await TestApp.run(queuesWrites: false) { app in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<8 {
          group.addTask {
            let (ana, ben) = (try await app.signUp("ana\(number)"), try await app.signUp("ben\(number)"))
            try await ana.report(ben, text: "Hers")
            try await ben.report(ana, text: "His")
            async let one: APIResponse = ana.deleteAccount()
            async let other: APIResponse = ben.deleteAccount()
            _ = (try await one, try await other)
          }
        }
        try await group.waitForAll()
      }
      let entries = try await app.reports()
      #expect(entries.count == 16)
      #expect(entries.allSatisfy { $0.reporter == nil && $0.text == nil && $0.owner == nil && $0.expiresAt == nil })
    }
  }
}
