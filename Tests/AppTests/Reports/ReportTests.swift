import Foundation
import Postgres
import Testing

@testable import App

@Suite struct ReportTests {
  @Test func `a report keeps what it is about, and changes no one's lists`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      try await ben.editProfile(#"{"bio": "Buy my pills"}"#)
      let stale = try await app.stale(among: [ana, ben]) {
        let report = try await ana.report(ben, reason: "harassment", text: " He writes\\nto everyone ").json
        #expect(report.keys == ["id", "userId", "eventId", "guestId", "reason", "text", "createdAt"])
        #expect(report["userId"].string == ben.id && report["eventId"] == .null)
        #expect(report["reason"].string == "harassment" && report["text"].string == "He writes\nto everyone")
      }
      #expect(stale == [:])
      #expect(try await app.takeNotifications().isEmpty)
      try await ben.editProfile(#"{"username": "benno", "displayName": "Benno", "bio": null}"#)
      let entries = try await app.reports()
      #expect(entries.count == 1)
      let entry = try #require(entries.first)
      #expect(entry.snapshot == ["username": "ben", "displayName": "Ben", "bio": "Buy my pills"])
      #expect(entry.reporter == "ana" && entry.owner == "benno" && entry.userId == ben.id && entry.eventId == nil)
      #expect(entry.closedAt == nil && entry.expiresAt == nil)
    }
  }

  @Test func `a report keeps the picture that the user had`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let url = try await ben.show(Sample.jpeg(width: 32, height: 16))
      let shown = try await app.fetch(url + "?size=768").bytes
      let report = try #require(Report.ID(try await ana.report(ben, reason: "nudity").json["id"].string ?? ""))
      try await ben.removePicture()
      #expect(try await app.reports().map(\.hasPicture) == [true])
      #expect(try await Report.picture(of: report, in: app.service).map(Array.init) == shown)
    }
  }

  @Test func `a guest reports an event, also an archived one whose creator is hidden`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let party = try await ana.createEvent("Party", inviting: [ben])["id"].string ?? ""
      try await ana.edit(
        party, #"{"note": "Bring cash", "location": {"name": "Ana's kitchen"}, "url": "https://a.org"}"#)
      let past =
        try await ana.createEvent("Past", inviting: [ben], startTime: "2020-01-01T10:00:00Z", endTime: nil)["id"].string
        ?? ""
      _ = try await app.service.change { try await Event.archive(endedBefore: .now(), atMost: 10, in: $0) }
      try await ben.report(event: party)
      try await ben.block(ana)
      // The block has removed him from the guest list.
      #expect(try await ben.report(event: party, expecting: 404).problem == "event-not-found")
      let report = try await ben.report(event: past).json
      #expect(report["eventId"].string == past && report["userId"] == .null && report["text"] == .null)

      let entries = try await app.reports()
      #expect(entries.map(\.eventId) == [past, party] && entries.allSatisfy { $0.userId == nil })
      #expect(entries.map(\.owner) == ["ana", "ana"])
      #expect(
        entries.map(\.snapshot) == [
          ["title": "Past", "creator": "ana"],
          ["title": "Party", "note": "Bring cash", "place": "Ana's kitchen", "url": "https://a.org", "creator": "ana"],
        ])
      try await app.takeNotifications()
    }
  }

  @Test func `a repeated report returns the open one unchanged, and after it is closed a new one`() async throws {
    try await TestApp.run { app in
      let (ana, ben, cleo) = (try await app.signUp("ana"), try await app.signUp("ben"), try await app.signUp("cleo"))
      let first = try await ana.report(ben, reason: "spam", text: "First")
      let second = try await ana.report(ben, reason: "hate", text: "Second", expecting: 200)
      #expect(second.json == first.json)
      // Other reporters and other subjects have reports of their own.
      try await cleo.report(ben)
      try await ana.report(cleo)
      try await app.closeReports()
      let third = try await ana.report(ben, reason: "hate", text: "Third")
      #expect(third.json["id"] != first.json["id"] && third.json["text"].string == "Third")
      #expect(try await app.reports().count == 4)
    }
  }

  private func report(
    _ other: Phone, by reporter: Phone, _ id: String, key: String? = nil, _ reason: String = "spam"
  ) async throws -> APIResponse {
    try await reporter.send(
      "POST", "reports", #"{"userId": "\#(other.id)", "reason": "\#(reason)", "id": "\#(id)"}"#,
      headers: key.map { [("Idempotency-Key", $0)] } ?? [])
  }

  @Test func `a report with an id of the client's own is sent once, at any age`() async throws {
    try await TestApp.run { app in
      let (ana, ben, cleo) = (try await app.signUp("ana"), try await app.signUp("ben"), try await app.signUp("cleo"))
      let (id, other) = (Report.ID.new().description, Report.ID.new().description)
      let first = try await report(ben, by: ana, id)
      #expect(first.status == 201 && first.json["id"].string == id)
      func expectRepeats(_ sourceLocation: SourceLocation = #_sourceLocation) async throws {
        // With and without a key, and whatever the request says.
        for (key, subject) in [(nil, ben), ("\(UUID())", ben), (nil, cleo), ("\(UUID())", cleo)] as [(String?, Phone)] {
          let again = try await report(subject, by: ana, id, key: key, "hate")
          #expect(again.status == 200 && again.json == first.json, "\(again.body)", sourceLocation: sourceLocation)
        }
        #expect(try await app.reports().count == 1, sourceLocation: sourceLocation)
      }
      try await expectRepeats()
      // There is an open report, so this id is not used.
      #expect(try await report(ben, by: ana, other).json == first.json)
      #expect(try await report(ben, by: ana, other, key: "k").json == first.json)
      try await app.closeReports()
      try await expectRepeats()
      let taken = try await report(ben, by: cleo, id)
      #expect(taken.status == 409 && taken.problem == "id-taken")
      #expect(try await report(ben, by: cleo, id, key: "k").problem == "id-taken")
      // The next one has an id of its own.
      #expect(try await report(ben, by: ana, other).status == 201)
      #expect(try await app.reports().map(\.id) == [other, id])
    }
  }

  @Test func `of concurrent reports with one id, one is filed, and the others get it`() async throws {
    try await TestApp.run(queuesWrites: false) { app in
      let (ana, ben, cleo) = (try await app.signUp("ana"), try await app.signUp("ben"), try await app.signUp("cleo"))
      let id = Report.ID.new().description
      let responses = try await withThrowingTaskGroup(of: APIResponse.self) { group in
        for number in 0..<8 { group.addTask { try await report(number % 2 == 0 ? ben : cleo, by: ana, id) } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(responses.map(\.status).sorted() == [200, 200, 200, 200, 200, 200, 200, 201])
      #expect(Set(responses.map { $0.json["userId"].string }).count == 1)
      #expect(try await app.reports().map(\.id) == [id])
    }
  }

  @Test func `users report neither themselves nor what they do not see`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let event = try await ana.createEvent()["id"].string ?? ""
      for (response, field) in [
        (try await ana.report(ana, expecting: 422), "userId"),
        (try await ana.report(event: event, expecting: 422), "eventId"),
      ] {
        #expect(response.badFields == [field] && response.json["errors"][0]["code"].string == "not-allowed")
      }
      let unknown = try await ben.report(event: Event.ID.new().description, expecting: 404)
      #expect(unknown.problem == "event-not-found")
      #expect(try await ben.report(event: event, expecting: 404).withoutRequestID == unknown.withoutRequestID)
      #expect(try await app.reports().isEmpty)
    }
  }

  @Test func `a sender who has deleted the account is reported by the id in the notification`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let cleo = try await app.signUp("cleo")
      try await cleo.sendFriendRequest(to: ana)
      let event = try await ben.createEvent("Party", inviting: [ana])["id"].string ?? ""
      try await app.fanOut()
      let senders = try await ana.get("notifications")["items"].array.compactMap { $0["userId"].string }
      #expect(senders == [ben.id, cleo.id, ben.id])
      for phone in [ben, cleo] { try await phone.deleteAccount() }
      #expect(try await ana.get("notifications")["items"].array.compactMap { $0["userId"].string } == [])
      for phone in [ben, cleo] {
        let report = try await ana.report(phone, reason: "harassment", text: "Threats").json
        #expect(report["userId"].string == phone.id && report["text"].string == "Threats")
        #expect(try await ana.report(phone, expecting: 200).json == report)
      }
      // The guests still see the event.
      try await ana.report(event: event)
      let entries = try await app.reports()
      #expect(entries.map(\.userId) == [nil, cleo.id, ben.id])
      #expect(entries.allSatisfy { $0.owner == nil && !$0.hasPicture && $0.expiresAt == nil })
      #expect(entries.map(\.snapshot) == [["title": "Party"], [:], [:]])
      try await app.takeNotifications()
    }
  }

  @Test func `a report tells nothing about an id: known, blocked, hidden, deleted or unknown`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let (known, blocked) = (try await app.signUp("known"), try await app.signUp("blocked"))
      let (hiding, deleted) = (try await app.signUp("hiding"), try await app.signUp("deleted"))
      try await ana.block(blocked)
      try await hiding.editProfile(#"{"bio": "Buy my pills"}"#)
      try await hiding.block(ana)
      // Her list does not show this block, because the other one came first.
      try await ana.block(hiding)
      try await deleted.deleteAccount()
      let ids = [known.id, blocked.id, hiding.id, deleted.id, User.ID.new().description]
      for id in ids {
        let body = #"{"userId": "\#(id)", "reason": "spam"}"#
        for (status, key) in [(201, "a"), (201, "a"), (200, "b")] {
          let response = try await ana.send("POST", "reports", body, headers: [("Idempotency-Key", "\(key)-\(id)")])
          #expect(response.status == status, "\(response.body)")
          #expect(response.json["userId"].string == id && response.json["eventId"] == .null)
          #expect(response.json.keys == ["id", "userId", "eventId", "guestId", "reason", "text", "createdAt"])
        }
      }
      // Operators see who has blocked a victim to avoid a report.
      let entries = try await app.reports()
      #expect(entries.count == 5)
      #expect(entries.first { $0.userId == hiding.id }?.snapshot["bio"] == "Buy my pills")
      // The reporter does not.
      let exported = try await ana.get("users/me/export")["reports"].array
      #expect(exported.count == 5 && exported.allSatisfy { $0.keys == Self.exportedMembers })
    }
  }

  @Test func `the export has the reports that the caller has sent, and none about the caller`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      try await ana.report(ben, text: "Ben's pills")
      let reports = try await ana.get("users/me/export")["reports"].array
      #expect(reports.map(\.keys) == [Self.exportedMembers])
      #expect(reports.map { $0["text"].string } == ["Ben's pills"])
      #expect(try await ben.get("users/me/export")["reports"].array.isEmpty)
    }
  }

  private static let exportedMembers: Set = [
    "id", "userId", "eventId", "visitorId", "reason", "text", "createdAt", "closedAt",
  ]

  // MARK: At once

  @Test func `a user sends at most twenty new reports in a day`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let others = try await app.crowd(21, around: ana)
      for other in others.prefix(20) { try await ana.report(other) }
      let refused = try await ana.report(others[20], expecting: 429)
      #expect(refused.problem == "too-many-reports")
      let wait = refused.header("Retry-After").flatMap { Int($0) } ?? 0
      #expect((86_000...86_400).contains(wait), "\(wait)")
      #expect(try await app.reports().count == 20)
      // A repeated report is not new, and the limit does not apply to others.
      try await ana.report(others[0], expecting: 200)
      try await others[0].report(ana)
      // Closed reports count.
      try await app.closeReports()
      try await ana.report(others[20], expecting: 429)
      try await app.database.execute("UPDATE reports SET created_at = created_at - interval '1 day'")
      try await ana.report(others[20])
    }
  }

  @Test func `the limit counts by the time of a report, whatever ids the client makes`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let others = try await app.crowd(22, around: ana)
      // Reports of last year, with ids of the far future.
      for (number, other) in others.prefix(21).enumerated() {
        let digits = String(number, radix: 16)
        let id = "ffffffff-ffff-7fff-bfff-" + String(repeating: "0", count: 12 - digits.count) + digits
        #expect(try await report(other, by: ana, id).status == 201)
        try await app.database.execute("UPDATE reports SET created_at = created_at - interval '1 year'")
      }
      try await app.closeReports()
      for other in others.prefix(20) { try await ana.report(other) }
      let refused = try await ana.report(others[21], expecting: 429)
      #expect(refused.problem == "too-many-reports")
    }
  }

  @Test func `a report is filed although an operator closes the open one at the same moment`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let first = try await ana.report(ben, reason: "spam")
      // After the insert has found the open report, and before the report is read.
      try await app.database.execute(
        """
        CREATE FUNCTION close_reports() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
        BEGIN
          UPDATE reports SET closed_at = now() WHERE reason = 'spam' AND closed_at IS NULL;
          RETURN NULL;
        END
        $$
        """)
      try await app.database.execute(
        """
        CREATE TRIGGER close_reports AFTER INSERT ON reports FOR EACH STATEMENT EXECUTE FUNCTION close_reports()
        """)
      // With a key, the open report is not looked for before the insert.
      let second = try await app.send(
        "POST", "reports", body: #"{"userId": "\#(ben.id)", "reason": "hate", "text": "Second"}"#,
        headers: [("Idempotency-Key", UUID().uuidString)], token: ana.accessToken)
      #expect(second.status == 201)
      #expect(second.json["id"] != first.json["id"] && second.json["text"].string == "Second")
      #expect(try await app.reports().map { $0.closedAt == nil } == [true, false])
    }
  }

  @Test func `of the same report sent many times at once, one is kept`() async throws {
    try await TestApp.run(queuesWrites: false) { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let body = #"{"userId": "\#(ben.id)", "reason": "spam"}"#
      let statuses = try await app.withConnections(12) {
        try await app.race(12) { _ in try await ana.send("POST", "reports", body) }
      }
      #expect(statuses == [201: 1, 200: 11])
      #expect(try await app.reports().count == 1)
    }
  }

  @Test func `of many reports at once only as many pass as the limit allows`() async throws {
    try await TestApp.run(queuesWrites: false) { app in
      let ana = try await app.signUp("ana")
      let others = try await app.crowd(24, around: ana)
      let statuses = try await app.withConnections(12) {
        try await app.race(24) { number in
          try await ana.send("POST", "reports", #"{"userId": "\#(others[number].id)", "reason": "spam"}"#)
        }
      }
      #expect(statuses == [201: 20, 429: 4])
      #expect(try await app.reports().count == 20)
    }
  }
}
