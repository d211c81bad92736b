import Foundation
import Logging
import Postgres
import TestSupport
import Testing

@testable import App

/// The trace of a request, by W3C Trace Context.
@Suite struct TraceTests {
  private static let id = "4bf92f3577b34da6a3ce929d0e0e4736"
  private static let header = "00-\(id)-00f067aa0ba902b7-01"

  @Test(arguments: [
    "", "00", "01-\(id)-00f067aa0ba902b7-01", "00-\(id)-00f067aa0ba902b7-01-x", "00-\(id)-00f067aa0ba902b7-0",
    "00-\(id.uppercased())-00f067aa0ba902b7-01", "00-\(id)-00F067AA0BA902B7-01",
    "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-\(id)-0000000000000000-01",
    "00-\(id)-00f067aa0ba902b7-0g", "00_\(id)-00f067aa0ba902b7-01", "00-\(id)_00f067aa0ba902b7-01",
    "00-\(id)-00f067aa0ba902b7_01", " 00-\(id)-00f067aa0ba902b7-01", "ff-\(id)-00f067aa0ba902b7-01",
    "00-\(id.dropLast())é-00f067aa0ba902b7-01",
  ])
  func `a header that breaks the standard is ignored`(text: String) {
    #expect(Trace(traceparent: text) == nil)
  }

  @Test func `a child has the trace and its flags, and a parent of its own`() throws {
    for flags in ["00", "01", "ff"] {
      let trace = try #require(Trace(traceparent: "00-\(Self.id)-00f067aa0ba902b7-\(flags)"))
      #expect(trace.id == Self.id)
      #expect(Trace(stored: trace.stored) == trace)
      let children = Set((1...50).map { _ in trace.traceparent() })
      #expect(children.count == 50)
      #expect(children.allSatisfy { Trace(traceparent: $0) == trace })
    }
    for stored in ["", Self.id, "\(Self.id)-0", "\(Self.id)-01-01", "\(Self.id)-zz"] {
      #expect(Trace(stored: stored) == nil, "\(stored)")
    }
  }

  @Test func `a request's log line names its trace, if it has a valid one`() async throws {
    let log = CapturedLog()
    try await TestApp.run(["MUSTER_LOG_REQUESTS": "all"], logger: log.logger()) { app in
      _ = try await app.send("GET", "/health/live", headers: [("traceparent", Self.header)])
      _ = try await app.send("GET", "/health/live", headers: [("traceparent", "nonsense")])
      _ = try await app.sendRaw(
        "GET", "/health/live", headers: [("traceparent", Self.header), ("traceparent", Self.header)])
      _ = try await app.send("GET", "/health/live")
    }
    let lines = log.lines.filter { $0.message == "request" }
    #expect(lines.map { "\($0.metadata["trace"] ?? "none")" } == [Self.id, "none", "none", "none"])
  }

  @Test func `the webhooks that follow from a request continue its trace`() async throws {
    try await WebhookSink.run { sink in
      try await TestApp.run(sink.environment) { app in
        let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
        try await app.takeMails()
        let hook = #"{"platform": "webhook", "token": "http://\#(sink.address)/hook"}"#
        #expect(try await ben.send("PUT", "devices", hook).status == 201)
        let request = #"{"receiverId": "\#(ben.id)"}"#
        let sent = try await ana.send("POST", "friend-requests", request, headers: [("traceparent", Self.header)])
        #expect(sent.status == 201)
        let worker = NotificationWorker(
          app.dependencies, sender: Channels(app.dependencies),
          mailer: app.dependencies.webhookMailer ?? NoMailer(), concurrency: 4)
        try await worker.runOnce()
        let push = try #require(sink.deliveries.first)
        #expect(push.json["type"].string == "friend-request")
        let passed = try #require(push.headers["traceparent"])
        #expect(Trace(traceparent: passed) == Trace(traceparent: Self.header))
        #expect(passed != Self.header)

        // A mail, and a request on the same connections without a trace.
        let reset = try await app.send(
          "POST", "auth/password-reset", body: #"{"email": "ana@example.com"}"#,
          headers: [("traceparent", Self.header)])
        #expect(reset.status == 202)
        #expect(try await app.askForReset("ben@example.com").status == 202)
        try await worker.runOnce()
        let mails = sink.deliveries.dropFirst()
        #expect(mails.count == 2)
        for mail in mails {
          let isTraced = mail.json["data"]["to"].string == "ana@example.com"
          let trace = mail.headers["traceparent"].flatMap { Trace(traceparent: $0) }
          #expect(trace?.id == (isTraced ? Self.id : nil))
        }
        try await app.takeNotifications()
      }
    }
  }

  @Test func `several edits that become one push have the trace of the last`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      try await ben.addDevice("bens")
      let event = try #require(try await ana.createEvent(inviting: [ben])["id"].string)
      try await app.worker(Recorder()).runOnce()
      let traces = [Self.id, String(Self.id.reversed()), "0123456789abcdef0123456789abcdef"]
      // Two in one step of the fan-out, and one that joins a waiting delivery.
      for (number, trace) in traces.enumerated() {
        let edited = try await ana.send(
          "PATCH", "events/\(event)", #"{"title": "Picnic \#(number)"}"#,
          headers: [("traceparent", "00-\(trace)-00f067aa0ba902b7-01")])
        #expect(edited.status == 200)
        if number > 0 { try await app.fanOut() }
      }
      let recorder = Recorder()
      try await app.worker(recorder).runOnce()
      #expect(recorder.received.map(\.push.trace?.id) == [traces[2]])
      // A later change without a trace has none.
      try await ana.edit(event, #"{"title": "Dinner"}"#)
      try await app.worker(recorder).runOnce()
      #expect(recorder.received.map(\.push.trace?.id) == [traces[2], nil])
      try await app.takeNotifications()
    }
  }

  // MARK: Statements

  @Test func `each statement of a request names the route in a comment`() async throws {
    let log = StatementLog()
    try await TestApp.run(logger: log.logger) { app in
      let ana = try await app.signUp("ana")
      let event = try #require(try await ana.createEvent()["id"].string)
      for (method, path, body, route) in [
        ("GET", "events/\(event)", nil, "GET /api/v1/events/{id}"), ("HEAD", "events", nil, "GET /api/v1/events"),
        ("PATCH", "users/me", #"{"displayName": "Anna"}"#, "PATCH /api/v1/users/me"),
        ("GET", "users/me/export", nil, "GET /api/v1/users/me/export"),
        ("GET", "/health/ready", nil, "GET /health/ready"),
      ] as [(String, String, String?, String)] {
        let statements = try await log.statements {
          let response = try await ana.send(method, path, body)
          #expect(response.status == 200)
        }
        .filter { !["BEGIN", "BEGIN READ ONLY", "COMMIT"].contains($0) }
        #expect(!statements.isEmpty)
        for statement in statements { #expect(statement.hasPrefix("/* \(route) */ "), "\(statement)") }
      }
    }
  }

  @Test func `a statement that waits shows its route in pg_stat_activity`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.database.transaction { transaction in
        try await transaction.rows("SELECT FROM users FOR UPDATE")
        let edit = Task { try await ana.send("PATCH", "users/me", #"{"displayName": "Anna"}"#).status }
        try await app.waitForLocks(1)
        let query: String? = try await app.value(
          "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
        #expect(query?.hasPrefix("/* PATCH /api/v1/users/me */ ") == true, "\(query ?? "")")
        _ = edit
      }
      try await eventually { try await ana.get("users/me")["displayName"].string == "Anna" }
    }
  }
}
