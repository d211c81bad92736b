import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import App

/// Records all pushes to devices, with a configurable result.
final class Recorder: PushSender {
  struct Received: Sendable {
    let push: Push
    /// The device's token.
    let token: String

    var payload: JSON { (try? JSON(parsing: push.payload.utf8)) ?? .null }
  }

  private let kept = Mutex<[Received]>([])
  private let beginnings = Mutex(0)
  private let isHolding = Mutex(false)
  private let result: @Sendable (Push, Device) async throws -> Void

  /// - Parameter result: throws if the delivery must fail.
  init(_ result: @escaping @Sendable (Push, Device) async throws -> Void = { _, _ in }) {
    self.result = result
  }

  func send(_ push: Push, to device: Device) async throws {
    beginnings.withLock { $0 += 1 }
    while isHolding.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(10)) }
    try await result(push, device)
    kept.withLock { $0.append(Received(push: push, token: device.token)) }
  }

  var received: [Received] { kept.withLock { $0 } }
  var begun: Int { beginnings.withLock { $0 } }

  /// The values of `round` in the pushes to one device. ``TestApp/enqueue(rounds:to:)`` sets `round`.
  func rounds(_ token: String) -> [Int?] {
    received.filter { $0.token == token }.map { $0.payload["round"].int }
  }

  /// Holds all pushes that begin from now on, until ``letGo()``.
  func hold() { isHolding.withLock { $0 = true } }
  func letGo() { isHolding.withLock { $0 = false } }
}

extension DeliveryFailure {
  static let down = DeliveryFailure(description: "down")
  static let refused = DeliveryFailure(description: "refused", remedy: .none)
  static let unknownDevice = DeliveryFailure(description: "unknown", remedy: .forgettingTheDevice)
}

extension Phone {
  /// Registers a device with SQL, for this phone's session.
  func addDevice(_ token: String) async throws {
    let (id, session): (Device.ID, Session.ID) = (.new(), try self.session)
    try await app.database.execute(
      """
      INSERT INTO devices (id, user_id, session_id, platform, token)
      VALUES (\(id), \(userID), \(session), 'log', \(token))
      """)
  }
}

extension TestApp {
  /// Does what is left of the worker's housekeeping.
  ///
  /// - Parameter now: the time by the worker's clock.
  func keepHouse(at now: Date = Date()) async {
    await Housekeeping(
      zones: dependencies.zones, eventRetention: dependencies.eventRetention, logger: dependencies.logger
    ).run(in: service, now: now)
  }

  func worker(_ sender: any PushSender, concurrency: Int = 4) -> NotificationWorker {
    NotificationWorker(dependencies, sender: sender, mailer: NoMailer(), concurrency: concurrency)
  }

  /// Creates users, numbered from 1, each with this number of devices. The devices of the first are `1-1`, `1-2` and so
  /// on.
  func gatherReaders(_ count: Int, devices: Int = 1) async throws {
    try await database.batch(
      """
      INSERT INTO users (id, username, display_name)
      SELECT md5('r' || n)::uuid, 'reader' || n, 'Reader' FROM generate_series(1, \(count)) AS n
      """,
      """
      INSERT INTO sessions (id, user_id, rotated_at, kid, created_at)
      SELECT md5('t' || n)::uuid, md5('r' || n)::uuid, now(), 'k', now() FROM generate_series(1, \(count)) AS n
      """,
      """
      INSERT INTO devices (id, user_id, session_id, platform, token)
      SELECT uuid_v7(), md5('r' || n)::uuid, md5('t' || n)::uuid, 'log', n || '-' || d
      FROM generate_series(1, \(count)) AS n, generate_series(1, \(devices)) AS d
      """)
  }

  /// Queues deliveries to all devices of the readers: one notification per reader and round, in the order of the
  /// rounds. Each reader has one subject.
  func enqueue(rounds: Range<Int>, to readers: Int) async throws {
    for round in rounds {
      try await database.execute(
        """
        WITH notices AS MATERIALIZED (SELECT n, uuid_v7() AS id FROM generate_series(1, \(readers)) AS n)
        INSERT INTO deliveries (notification_id, recipient_id, device_id, type, subject_id, payload, created_at)
        SELECT notices.id, d.user_id, d.id, 'test', md5('s' || n)::uuid,
          jsonb_build_object('round', \(round), 'n', n, 'message', 'Hello'), now()
        FROM notices
        JOIN devices AS d ON d.user_id = md5('r' || n)::uuid
        ORDER BY n, d.token
        """)
    }
  }

  /// Queues deliveries to the devices of one reader, each about another subject.
  func enqueue(subjects: Int, to reader: Int, round: Int = 0) async throws {
    try await database.execute(
      """
      INSERT INTO deliveries (notification_id, recipient_id, device_id, type, subject_id, payload, created_at)
      SELECT uuid_v7(), d.user_id, d.id, 'test', uuid_v7(),
        jsonb_build_object('round', \(round), 'n', \(reader), 'message', 'Hello'), now()
      FROM generate_series(1, \(subjects))
      JOIN devices AS d ON d.user_id = md5('r' || \(reader))::uuid
      """)
  }

  /// Makes all deliveries due that wait for their next attempt.
  func hurry() async throws {
    try await database.execute("UPDATE deliveries SET due_at = now() WHERE due_at > now() AND died_at IS NULL")
  }

  func countQueue() async throws -> Int {
    try await value("SELECT count(*) FROM deliveries WHERE died_at IS NULL") ?? 0
  }

  func countDead() async throws -> Int {
    try await value("SELECT count(*) FROM deliveries WHERE died_at IS NOT NULL") ?? 0
  }

  func forgetDeliveries() async throws {
    try await database.execute("DELETE FROM deliveries")
  }
}
