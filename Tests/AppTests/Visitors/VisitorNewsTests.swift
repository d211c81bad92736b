import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// The hosts' notifications of many visitors' answers.
@Suite struct VisitorNewsTests {
  /// A host with an event and a link, and her co-host.
  private func gather(
    _ app: TestApp, _ link: String = #"{"kind": "answer"}"#
  ) async throws -> (ana: Phone, ben: Phone, event: String, link: (id: String, token: String)) {
    let (ana, ben) = try await app.friends("ana", "ben")
    let event = try await ana.createEvent("Swim")["id"].string ?? ""
    try await ana.addHost(ben, to: event)
    try await app.takeNotifications()
    return (ana, ben, event, try await ana.createLink(to: event, link))
  }

  /// Files what is queued, without ending the minute.
  private func file(_ app: TestApp) async throws {
    while try await FanOut.step(in: app.service).notices > 0 {}
  }

  private func inbox(of phone: Phone) async throws -> [String] {
    try await phone.get("notifications?unread=true")["items"].array.compactMap { $0["message"].string }
  }

  @Test func `many visitors within a minute become one notification for each host`() async throws {
    try await TestApp.run { app in
      let (ana, ben, event, link) = try await gather(app)
      for number in 1...30 {
        try await app.visit(link.token, name: "Guest \(number)", number == 30 ? "declined" : "going")
        try await file(app)
      }
      for host in [ana, ben] {
        let shown = try await inbox(of: host).filter { $0.contains("Guest") }
        #expect(shown == ["Guest 1 is going to “Swim”."])
      }
      try await app.fanOut()
      for host in [ana, ben] {
        let items = try await host.get("notifications?unread=true")["items"].array.filter { $0["count"] != .null }
        #expect(items.count == 1)
        let item = items.first ?? .null
        #expect(item["type"].string == "guest-answered" && item["eventId"].string == event)
        #expect(item["message"].string == "Guest 1 and 29 others answered “Swim”.")
        #expect(item["count"].int == 30 && item["pending"].int == 0)
        #expect(item["guests"].array.map { $0["name"].string } == ["Guest 1", "Guest 2", "Guest 3"])
        // It has replaced the first one.
        #expect(try await inbox(of: host).filter { $0.contains("Guest") }.count == 1)
      }
      try await app.takeNotifications()
    }
  }

  @Test func `one more visitor, and the same visitor again, get the usual notification after the minute`() async throws
  {
    try await TestApp.run { app in
      let (ana, ben, _, link) = try await gather(app)
      let zoe = try await app.visit(link.token)
      try await file(app)
      try await zoe.answer("maybe")
      try await zoe.answer("declined")
      try await file(app)
      for host in [ana, ben] { #expect(try await inbox(of: host).first == "Zoe is going to “Swim”.") }
      let received = try await app.takeNotifications()
      #expect(received.map { $0.payload["message"].string } == Array(repeating: "Zoe cannot come to “Swim”.", count: 2))
      for host in [ana, ben] { #expect(try await inbox(of: host).first == "Zoe cannot come to “Swim”.") }
      // The next minute begins with an immediate notification.
      try await app.visit(link.token, name: "Yan")
      #expect(
        try await app.queuedNotices().map { $0.payload["message"].string }
          == Array(repeating: "Yan is going to “Swim”.", count: 2))
      try await app.takeNotifications()
    }
  }

  @Test func `nothing waits longer than a minute, and a worker sends it`() async throws {
    try await TestApp.run { app in
      let (ana, _, _, link) = try await gather(app)
      for name in ["Zoe", "Yan", "Xia"] { try await app.visit(link.token, name: name) }
      let due: Bool? = try await app.value(
        "SELECT due_at <= clock_timestamp() + interval '60 seconds' AND due_at > clock_timestamp() FROM visitor_news")
      #expect(due == true)
      let worker = NotificationWorker(
        app.dependencies, sender: LogSender(logger: .quiet), mailer: NoMailer(), concurrency: 1)
      try await worker.runOnce()
      #expect(try await inbox(of: ana).first == "Zoe is going to “Swim”.")
      try await app.database.batch("UPDATE visitor_news SET due_at = clock_timestamp()")
      try await worker.runOnce()
      #expect(try await inbox(of: ana).first == "Zoe and 2 others answered “Swim”.")
      #expect(try await app.value("SELECT count(*) FROM visitors WHERE has_news") == 0)
      try await app.takeNotifications()
    }
  }

  @Test func `requests for approval are one request, and mixed answers one answer`() async throws {
    try await TestApp.run { app in
      let (ana, _, event, link) = try await gather(app, #"{"kind": "answer", "approval": true}"#)
      for name in ["Zoe", "Yan"] { try await app.visit(link.token, name: name) }
      var received = try await app.takeNotifications().filter { $0.recipient == ana.id }
      #expect(received.map(\.type) == ["approval-requested", "approval-requested"])
      #expect(received.last?.payload["message"].string == "Zoe and 1 other ask to come to “Swim”.")
      let open = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      try await app.visit(link.token, name: "Xia")
      try await app.visit(open.token, name: "Wim")
      received = try await app.takeNotifications().filter { $0.recipient == ana.id }
      #expect(received.map(\.type) == ["approval-requested", "guest-answered"])
      #expect(received.last?.payload["pending"].int == 1 && received.last?.payload["count"].int == 2)
    }
  }

  @Test func `a visitor who is gone is neither counted nor named`() async throws {
    try await TestApp.run { app in
      let (ana, ben, event, link) = try await gather(app)
      let visits = [
        try await app.visit(link.token, name: "Zoe"), try await app.visit(link.token, name: "Yan"),
        try await app.visit(link.token, name: "Xia"), try await app.visit(link.token, name: "Wim"),
      ]
      // Before the notification is made.
      try await visits[3].act("erase", expecting: 200)
      let received = try await app.takeNotifications().filter { $0.recipient == ben.id }
      #expect(received.last?.payload["message"].string == "Zoe and 2 others answered “Swim”.")
      // And after it.
      let stale = try await app.stale(among: [ana, ben]) { try await visits[0].act("erase", expecting: 200) }
      #expect(stale.mapValues { $0.contains(.notifications) } == ["ana": true, "ben": true])
      #expect(try await inbox(of: ana).first == "Yan and 2 others answered “Swim”.")
      for visit in visits[1...2] {
        try await ana.perform(
          "DELETE", "events/\(event)/invitations/\(visit.id)", expecting: 200, sourceLocation: #_sourceLocation)
      }
      #expect(try await inbox(of: ben).first == "3 visitors answered “Swim”.")
      for name in ["Zoe", "Yan", "Xia", "Wim"] {
        let left: Int? = try await app.value(
          "SELECT count(*) FROM notifications WHERE payload::text LIKE '%' || \(name) || '%'")
        #expect(left == 0, "\(name)")
      }
      try await app.takeNotifications()
    }
  }

  @Test func `concurrent answers, while workers send, are each announced once`() async throws {
    try await TestApp.run(queuesWrites: false) { app in
      let (ana, _, _, link) = try await gather(app)
      let worker = Task {
        while !Task.isCancelled {
          _ = try? await app.database.batch(
            "UPDATE visitor_news SET due_at = clock_timestamp() WHERE due_at IS NOT NULL")
          _ = try? await app.service.change { try await VisitorNews.tellNext(in: $0) }
        }
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<24 { group.addTask { try await app.visit(link.token, name: "Guest \(number)") } }
        try await group.waitForAll()
      }
      worker.cancel()
      await worker.value
      let received = try await app.takeNotifications().filter { $0.recipient == ana.id }
      // Each notice about several visitors counts the first one of its minute again.
      let single = received.count { $0.payload["count"] == .null }
      let several = received.reduce(0) { $0 + ($1.payload["count"].int ?? 0) }
      #expect(single + several >= 24)
      #expect(try await app.value("SELECT count(*) FROM visitors WHERE has_news") == 0)
    }
  }
}
