import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// A write that the synchronous standby does not confirm is done on the primary, and would be lost with it. The service
/// acknowledges it neither at once nor when it is repeated.
@Suite(.timeLimit(.minutes(10))) struct UnconfirmedWriteTests {
  private struct Write: Sendable {
    let phone: Phone
    let method: String
    let path: String
    var body: String?
    var key: String?

    func send() async throws -> APIResponse {
      try await phone.send(method, path, body, headers: key.map { [("Idempotency-Key", $0)] } ?? [])
    }
  }

  private static func wait(forStandby name: String, in app: TestApp) async throws {
    try await ScriptConnection.run(app.databaseURL, timeout: .seconds(60)) {
      try $0.script("ALTER SYSTEM SET synchronous_standby_names = '\(name)'")
      try $0.script("SELECT pg_reload_conf()")
    }
    // A backend reads the setting between two statements.
    try await eventually {
      try await app.database.value("SELECT current_setting('synchronous_standby_names')") == name
    }
  }

  /// Cancels each wait for the standby, as a timeout would. The commit then holds on the primary.
  private static func cancellingWaits<Value: Sendable>(
    in app: TestApp, _ body: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    try await withThrowingTaskGroup(of: Value?.self) { group in
      group.addTask { try await body() }
      group.addTask {
        while !Task.isCancelled {
          try await app.database.rows(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
          try? await Task.sleep(for: .milliseconds(50))
        }
        return nil
      }
      let first = try await group.next() ?? nil
      group.cancelAll()
      return try #require(first)
    }
  }

  /// Each user writes one thing, so that no write waits for another.
  private static func writes(_ app: TestApp) async throws -> [Write] {
    var writes: [Write] = []
    for (number, key) in ["a-key", nil].enumerated() {
      func user(_ name: String) async throws -> Phone { try await app.signUp("\(name)\(number)") }
      let (blocked, asked) = (try await user("blocked"), try await user("asked"))
      let (gus, hal) = try await app.friends("gus\(number)", "hal\(number)")
      let event = try #require(try await gus.createEvent(inviting: [hal])["id"].string)
      let (id, title) = (Event.ID.new(), #""startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC", "title": "Picnic""#)
      writes += [
        Write(phone: try await user("ana"), method: "POST", path: "events", body: #"{"id": "\#(id)", \#(title)}"#),
        Write(phone: try await user("ben"), method: "PATCH", path: "users/me", body: #"{"bio": "Climbs"}"#),
        Write(phone: try await user("cleo"), method: "PUT", path: "blocks/\(blocked.id)"),
        Write(
          phone: try await user("dan"), method: "POST", path: "friend-requests",
          body: #"{"receiverId": "\#(asked.id)"}"#),
        Write(
          phone: try await user("gil"), method: "POST", path: "reports",
          body: #"{"userId": "\#(asked.id)", "reason": "spam"}"#),
        Write(
          phone: try await user("eva"), method: "PUT", path: "notification-preferences",
          body: #"{"event-updated": false}"#),
        Write(phone: hal, method: "PUT", path: "events/\(event)/invitations/me", body: #"{"status": "going"}"#),
        Write(
          phone: try await user("fay"), method: "PUT", path: "devices",
          body: #"{"platform": "log", "token": "ben\#(number)"}"#),
      ].map { write in
        var write = write
        write.key = key
        return write
      }
    }
    return writes
  }

  @Test func `neither the write nor its repetition is acknowledged`() async throws {
    let environment = ["MUSTER_THROTTLING": "off"]
    try await TestApp.onOwnCluster(environment) { _, own in
      try await ServiceProcess.run(of: own, environment) { app in
        let writes = try await Self.writes(app)
        try await Self.wait(forStandby: "missing", in: app)
        for attempt in 1...2 {
          _ = try await Self.cancellingWaits(in: app) {
            try await app.race(writes.count) {
              let response = try await writes[$0].send()
              #expect(response.status >= 500, "attempt \(attempt): \(writes[$0].method) \(writes[$0].path)")
              return response
            }
          }
        }
        try await Self.wait(forStandby: "", in: app)
        for write in writes {
          let response = try await write.send()
          #expect((200..<300).contains(response.status), "\(write.method) \(write.path): \(response.body)")
          if write.key != nil { #expect(response.header("Idempotent-Replayed") == "true", "\(write.path)") }
        }
        try await app.takeMails()
      }
    }
  }
}
