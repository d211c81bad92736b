import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import App

/// Keeps what devices were told; answers as it is told to.
final class Recorder: PushSender {
  struct Told: Sendable {
    let push: Push
    /// The device's.
    let token: String

    var payload: JSON { (try? JSON(parsing: push.payload.utf8)) ?? .null }
  }

  private let kept = Mutex<[Told]>([])
  private let beginnings = Mutex(0)
  private let isHolding = Mutex(false)
  private let answer: @Sendable (Push, Device) async throws -> Void

  /// - Parameter answer: throws for a failure.
  init(_ answer: @escaping @Sendable (Push, Device) async throws -> Void = { _, _ in }) {
    self.answer = answer
  }

  func send(_ push: Push, to device: Device) async throws {
    beginnings.withLock { $0 += 1 }
    while isHolding.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(10)) }
    try await answer(push, device)
    kept.withLock { $0.append(Told(push: push, token: device.token)) }
  }

  var told: [Told] { kept.withLock { $0 } }
  var begun: Int { beginnings.withLock { $0 } }

  /// What one device was told, by the member `round` of what ``TestApp/enqueue(rounds:to:)`` makes.
  func rounds(_ token: String) -> [Int?] {
    told.filter { $0.token == token }.map { $0.payload["round"].int }
  }

  /// What is begun waits until it is let go.
  func hold() { isHolding.withLock { $0 = true } }
  func letGo() { isHolding.withLock { $0 = false } }
}

extension DeliveryFailure {
  static let down = DeliveryFailure(description: "down")
  static let refused = DeliveryFailure(description: "refused", remedy: .none)
  static let unknownDevice = DeliveryFailure(description: "unknown", remedy: .forgettingTheDevice)
}

extension Phone {
  /// Registers a device by SQL, for this phone's session.
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
  func worker(_ sender: any PushSender, concurrency: Int = 4) -> NotificationWorker {
    NotificationWorker(dependencies, sender: sender, mailer: NoMailer(), concurrency: concurrency)
  }

  /// Makes people, numbered from 1, each with so many devices: the first one's are `1-1`, `1-2` and so on.
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

  /// Puts rows into the queue: for each reader one of each round, in order, about a subject of the reader's own.
  func enqueue(rounds: Range<Int>, to readers: Int) async throws {
    for round in rounds {
      try await database.execute(
        """
        INSERT INTO notification_queue (type, recipient_id, subject_id, payload)
        SELECT 'test', md5('r' || n)::uuid, md5('s' || n)::uuid, jsonb_build_object('round', \(round), 'n', n)
        FROM generate_series(1, \(readers)) AS n
        """)
    }
  }

  /// Lets what waits for a later attempt be due now.
  func hurry() async throws {
    try await database.execute("UPDATE notification_queue SET due_at = now() WHERE due_at > now()")
  }

  func countQueue() async throws -> Int {
    try await value("SELECT count(*) FROM notification_queue") ?? 0
  }

  func countDead() async throws -> Int {
    try await value("SELECT count(*) FROM dead_letters") ?? 0
  }

  /// Counts the statements that change rows of the queue from now on, of which a worker at rest makes renewals only.
  func countRenewals() async throws {
    try await database.execute("CREATE SEQUENCE renewals")
    try await database.execute(
      """
      CREATE FUNCTION count_renewal() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        PERFORM nextval('renewals');
        RETURN NULL;
      END
      $$
      """)
    try await database.execute(
      """
      CREATE TRIGGER renewals AFTER UPDATE ON notification_queue
      FOR EACH STATEMENT EXECUTE FUNCTION count_renewal()
      """)
  }

  func renewals() async throws -> Int {
    try await value("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM renewals") ?? 0
  }
}
