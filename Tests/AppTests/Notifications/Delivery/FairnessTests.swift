import Foundation
import HTTPServer
import Logging
import Postgres
import Synchronization
import Testing
import TestSupport

@testable import App

/// No user, host, channel or row takes the resources that others need.
@Suite struct FairnessTests {
  private static let allowed = ["MUSTER_WEBHOOK_ALLOW_PRIVATE": "on"]

  /// Gives a reader webhooks.
  private func addWebhooks(_ urls: [String], to reader: Int, secret: String, in app: TestApp) async throws {
    let sealed = try WebhookSecret.sealed(secret, keys: app.dependencies.refreshTokenKeys)
    try await app.database.execute(
      """
      INSERT INTO devices (id, user_id, session_id, platform, token, sealed_secret)
      SELECT uuid_v7(), md5('r' || \(reader))::uuid, md5('t' || \(reader))::uuid, 'webhook', url, \(sealed)
      FROM unnest(\(urls)) AS url
      """)
  }

  @Test func `webhooks that never respond delay neither another user nor another channel`() async throws {
    let latch = Latch()
    try await WebhookSink.run(responding: { _ in
      await latch.wait()
      return Response(status: .noContent)
    }) { tarpit in
      defer { latch.open() }
      try await WebhookSink.run { sink in
        try await TestApp.run(Self.allowed) { app in
          try await app.gatherReaders(4, devices: 0)
          let traps = (1...20).map { "http://\(tarpit.address)/\($0)" }
          try await addWebhooks(traps, to: 1, secret: tarpit.secret, in: app)
          try await addWebhooks(traps, to: 2, secret: tarpit.secret, in: app)
          try await addWebhooks(["http://\(sink.address)/"], to: 3, secret: sink.secret, in: app)
          try await app.database.execute(
            """
            INSERT INTO devices (id, user_id, session_id, platform, token)
            VALUES (uuid_v7(), md5('r4')::uuid, md5('t4')::uuid, 'log', 'x')
            """)
          for _ in 0..<3 {
            try await app.enqueue(subjects: 1, to: 1)
            try await app.enqueue(subjects: 1, to: 2)
          }
          // One more send at once than a single host may take.
          let worker = app.worker(Channels(app.dependencies), concurrency: Capacity.perHost + 1)
          let running = Task { try await worker.run() }
          try await eventually { tarpit.deliveries.count == Capacity.perHost }
          try await app.enqueue(rounds: 0..<1, to: 4)
          try await eventually { sink.deliveries.count == 1 }
          try await eventually {
            let left: Int? = try await app.value("SELECT count(*) FROM deliveries WHERE recipient_id = md5('r4')::uuid")
            return left == 0
          }
          #expect(tarpit.deliveries.count == Capacity.perHost)
          // Waiting for a slot is not an attempt.
          #expect(try await app.value("SELECT max(attempts) FROM deliveries") == 0)
          latch.open()
          try await eventually(within: .seconds(120)) {
            try await app.hurry()
            return try await app.countQueue() == 0
          }
          // Three rounds and one more, to twenty webhooks of each of two users.
          #expect(tarpit.deliveries.count == 160)
          running.cancel()
          try await running.value
        }
      }
    }
  }

  /// Inserts rows that our programs never write.
  private func plantBadRows(_ app: TestApp, _ secret: String) async throws {
    let (good, bad) = (
      try WebhookSecret.sealed(secret, keys: app.dependencies.refreshTokenKeys), Data("no sealed secret".utf8)
    )
    let others = try WebhookSecret.sealed(secret, keys: try SigningKeys(SigningKeys.generate()))
    for url in WebhookTests.malformed where !url.isEmpty && url.utf8.count <= 1024 && !url.hasPrefix("http:") {
      try await addWebhooks([url], to: 1, secret: secret, in: app)
    }
    try await app.database.execute(
      """
      INSERT INTO devices (id, user_id, session_id, platform, token, topic, sealed_secret)
      SELECT uuid_v7(), md5('r1')::uuid, md5('t1')::uuid, platform, token, topic, secret
      FROM (VALUES
        ('webhook', 'https://127.0.0.1:1/a', NULL, \(bad)), ('webhook', 'https://127.0.0.1:1/b', NULL, ''::bytea),
        ('webhook', 'https://127.0.0.1:1/c', NULL, \(others)),
        ('ios', 'no token', NULL, NULL), ('ios', 'abcd', E'a\\r\\nb: c', NULL), ('ios', 'abce', 'é', NULL),
        ('android', E'a\\nb', NULL, NULL), ('log', E'\\u0001', NULL, NULL)
      ) AS d (platform, token, topic, secret)
      """)
    let payloads = [
      "3", "null", #""x""#, "[]", "{}", #"{"message": 3}"#, #"{"message": "x", "changes": {"a": [null]}}"#,
    ]
    for payload in payloads {
      try await app.enqueue(subjects: 1, to: 1)
      try await app.database.execute(
        "UPDATE deliveries SET payload = \(JSONDocument(payload)) WHERE payload ? 'round'")
    }
    for change in [
      "created_at = '-infinity'", "created_at = 'infinity'", "created_at = '4713-01-01 BC'",
      "created_at = '294276-12-31'", "due_at = '-infinity'", "attempts = 2147483647", "type = ''",
      "type = 'event-reminder'", "type = 'event-updated'",
    ] {
      try await app.enqueue(subjects: 1, to: 1)
      try await app.database.execute(
        "UPDATE deliveries SET payload = '{\"message\": \"x\"}', \(unescaped: change) WHERE payload ? 'round'")
    }
    for payload in ["3", "{}", #"{"to": 3}"#, #"{"to": "a", "username": "b", "displayName": "c", "purpose": "x"}"#] {
      try await app.database.execute(
        """
        INSERT INTO mails (type, user_id, payload, created_at)
        SELECT type, md5('r1')::uuid, \(JSONDocument(payload)), time
        FROM unnest(ARRAY['', 'mail-x', 'é']) AS type, unnest(ARRAY[now(), 'infinity', '-infinity']) AS time
        """)
    }
    try await app.database.execute(
      """
      INSERT INTO apple_revocations (sealed_grant, created_at, attempts)
      SELECT bytes, time, 2147483647
      FROM unnest(ARRAY[''::bytea, '\\xff', '\\x0000', '\\x016105', \(good)]) AS bytes,
        unnest(ARRAY[now(), 'infinity', '-infinity']) AS time
      """)
  }

  @Test func `no stored row can stop a worker or keep another row from being sent`() async throws {
    try await WebhookSink.run { sink in
      try await PushServer.run(responding: { request, number in
        request.path == "/token" ? FCMTests.grant(number) : .response(200)
      }) { server, _ in
        let environment = try await server.environment().merging(sink.environment) { $1 }
        try await TestApp.run(environment) { app in
          try await app.gatherReaders(2, devices: 0)
          try await plantBadRows(app, sink.secret)
          try await addWebhooks(["http://\(sink.address)/"], to: 2, secret: sink.secret, in: app)
          try await app.enqueue(rounds: 0..<1, to: 2)
          let grant = try AppleGrant("x", clientID: "y", keys: app.dependencies.refreshTokenKeys)
          try await app.database.execute(grant.enqueueing)
          let program = try await Program(
            Program.path("muster"), ["worker", "--once"],
            environment: Muster.environment(app.databaseURL).merging(environment) { $1 })
          #expect(try await program.exitStatus(within: .seconds(120)) == 0, "\(program.standardError.suffix(2000))")
          #expect(sink.deliveries.contains { $0.json["data"]["round"].int == 0 })
          for table in ["deliveries", "mails", "apple_revocations"] {
            // Every row was delivered, failed or died.
            let untouched: Int? = try await app.value(
              """
              SELECT count(*) FROM \(unescaped: table)
              WHERE lease IS NOT NULL OR died_at IS NULL AND (attempts = 0 OR last_error IS NULL)
              """)
            #expect(untouched == 0, "\(table)")
            try await app.database.execute("DELETE FROM \(unescaped: table)")
          }
        }
      }
    }
  }

  @Test func `one row that kills workers becomes a dead letter after three deaths, and takes no other with it`()
    async throws
  {
    enum Victim { case unknown, process(Int32), none }
    let victim = Mutex(Victim.unknown)
    try await WebhookSink.run(responding: { _ in
      // A worker may send its first row before this test knows its pid.
      while !Task.isCancelled, case .unknown = victim.withLock({ $0 }) { try? await Task.sleep(for: .milliseconds(5)) }
      if case .process(let pid) = victim.withLock({ $0 }) { kill(pid, SIGKILL) }
      return Response(status: .internalServerError)
    }) { killer in
      try await WebhookSink.run { sink in
        try await TestApp.run(Self.allowed) { app in
          try await app.gatherReaders(9, devices: 0)
          try await addWebhooks(["http://\(killer.address)/"], to: 5, secret: killer.secret, in: app)
          for reader in 1...9 where reader != 5 {
            try await addWebhooks(["http://\(sink.address)/\(reader)"], to: reader, secret: sink.secret, in: app)
          }
          try await app.enqueue(rounds: 0..<2, to: 9)
          let environment = Muster.environment(app.databaseURL).merging(Self.allowed) { $1 }
          for death in 1...4 {
            let worker = try await Program(Program.path("muster"), ["worker"], environment: environment)
            defer { worker.signal(SIGKILL) }
            // After three deaths, the next row of the same subject would also kill.
            victim.withLock { $0 = death < 4 ? .process(worker.pid) : .none }
            // This test does not wait until the worker knows who died.
            try await eventually {
              try await app.database.execute(
                "UPDATE workers SET steady_since = now() - interval '1 minute'"
              ).affected > 0
            }
            guard death == 4 else {
              #expect(try await worker.exitStatus() == -SIGKILL)
              victim.withLock { $0 = .unknown }
              try await app.database.execute("UPDATE deliveries SET leased_until = now() WHERE lease IS NOT NULL")
              try await app.database.execute("DELETE FROM workers")
              continue
            }
            try await eventually(within: .seconds(20)) {
              let left: Int? = try await app.value(
                "SELECT count(*) FROM deliveries WHERE died_at IS NULL AND attempts = 0")
              return left == 0
            }
            worker.signal(SIGTERM)
            #expect(try await worker.exitStatus() == 0)
          }
          let dead = try await app.database.rows(
            "SELECT recipient_id = md5('r5')::uuid AS is_killer, deaths, last_error FROM deliveries WHERE died_at IS NOT NULL"
          )
          #expect(dead.count == 1)
          #expect(try dead.allSatisfy { try $0["is_killer"] && $0["deaths"] == 3 })
          // All others arrived at least once and in order.
          for reader in 1...9 where reader != 5 {
            var rounds: [Int?] = []
            for delivery in sink.deliveries where delivery.json["data"]["n"].int == reader {
              let round = delivery.json["data"]["round"].int
              if !rounds.contains(round) { rounds.append(round) }
            }
            #expect(rounds == [0, 1], "\(reader)")
          }
          try await app.forgetDeliveries()
        }
      }
    }
  }
}
