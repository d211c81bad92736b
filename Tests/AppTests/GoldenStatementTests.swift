import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// The statements that run most, whole, as PostgreSQL gets them: the files in `Tests/Golden/statements`. A change of a
/// statement is also a change of its file, so that a review sees it. A person makes it. Lines that begin with `--!` are
/// theirs.
@Suite struct GoldenStatementTests {
  /// Compares the statements with the file of this name.
  private func compare(_ name: String, _ statements: [String]) throws {
    let text = statements.map { "\($0);\n" }.joined(separator: "\n")
    try Golden.compare("statements/\(name).sql", with: text, ignoring: "--!")
  }

  @Test func `fan-out`() throws {
    try compare("fan-out", [FanOut.statement(.oldest).text])
  }

  @Test func `each part of the fan-out says in its file what it promises`() throws {
    let file = Golden.folder.appending(path: "statements/fan-out.sql")
    let lines = Golden.lines(try String(contentsOf: file, encoding: .utf8))
    let parts = lines.indices.filter { lines[$0].contains(/^(WITH )?[a-z_]+ AS (MATERIALIZED )?\(/) }
    #expect(parts.count == 21)
    for part in parts {
      #expect(part > 0 && lines[part - 1].hasPrefix("--! "), "\(lines[part])")
    }
  }

  @Test func `claims, renewals and acknowledgements of deliveries`() throws {
    let (queue, id) = (Delivery.queue, UUID())
    func claim(_ scope: LeaseQueue.Scope) -> String { queue.claiming(scope, atMost: 64, for: id, lease: id).text }
    try compare("claim", [claim(.all)])
    try compare("claim-recent", [claim(.recent)])
    let row = LeasedRow(lease: LeasedRow.Lease(id: 1, token: id), attempts: 0, createdAt: .now(), fields: .none)
    try compare("renew", [Heartbeat.writing(of: id).text, queue.renewing([row.lease]).text])
    var outcomes = Acknowledgements()
    outcomes.finish(row)
    try compare("acknowledge", outcomes.statements(for: queue).map(\.text))
    outcomes.retry(row, after: 1, because: "down")
    try compare("acknowledge-retries", outcomes.statements(for: queue).map(\.text))
  }

  @Test func `the check before a send, and what requests send`() async throws {
    let log = StatementLog()
    try await TestApp.run(logger: log.logger) { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let cleo = try await app.signUp("cleo")
      try await ben.addDevice("bens")
      let id = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
      let sent = try await log.statements { try await app.worker(Recorder()).step() }
      try compare("check", sent.filter { $0.contains("previous_secret_until") })
      try compare("feed", try await log.statements { _ = try await ben.get("events") })
      let stamp = try #require(try await ben.get("events")["timestamp"].string)
      try compare("validate", try await log.statements { _ = try await ben.stale([.events: stamp]) })
      try compare("answer", try await log.statements { try await ben.answer("going", to: id) })
      try compare("edit", try await log.statements { try await ana.edit(id, #"{"title": "Dinner"}"#) })
      let request = try await cleo.sendFriendRequest(to: ben)
      try compare("accept", try await log.statements { try await ben.accept(request) })
      try await app.takeNotifications()
    }
  }
}
