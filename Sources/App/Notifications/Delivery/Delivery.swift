import Foundation
import Postgres

/// One notification on its way to one device: a row of `deliveries`.
enum Delivery {
  static let chain = Chain(columns: ["device_id", "subject_id"])
  static let queue = LeaseQueue(
    table: "deliveries", chain: chain,
    columns: "q.notification_id, q.recipient_id, q.type, q.subject_id, q.payload, q.trace", typePlace: 2, userPlace: 1)

  /// Seconds after which a push that still fails becomes a dead letter: a day.
  private static let patience = 86_400

  static func source(_ sender: any PushSender, in database: Database) -> Dispatcher.Source {
    Dispatcher.Source(queue: queue, policy: DeliveryState.Policy(patience: patience)) { rows in
      let recheck = try await recheck(rows, in: database)
      return Dictionary(
        uniqueKeysWithValues: rows.compactMap { row in
          recheck[row.id].map { (row.id, verdict(on: row, $0, sender, database)) }
        })
    }
  }

  private static func verdict(
    on row: LeasedRow, _ target: Result<Target?, any Error>, _ sender: any PushSender, _ database: Database
  ) -> Dispatcher.Verdict {
    do {
      guard let target = try target.get() else { return .withdrawn }
      if let pause = target.pause, pause > 0 { return .later(seconds: pause) }
      let device = target.device
      var push = try Push(row)
      push.badge = target.badge
      push.wakesApp = target.wakesApp
      let recipient: User.ID = try row.fields[1]
      return .send(
        Dispatcher.Send(
          channel: device.platform.channel, recipient: recipient, device: device,
          host: device.platform == .webhook ? WebhookAddress.authority(of: device.token) : nil
        ) { [push] in
          try await sender.send(push, to: device)
          if push.isBadgeOnly { try await noteBadge(on: device.id, in: database) }
        })
    } catch {
      return .refused(DeliveryFailure(description: "the row is malformed: \(type(of: error))", remedy: .none))
    }
  }

  /// Deletes deliveries, dead letters included, in id order: the order in which workers acknowledge.
  ///
  /// - Parameter condition: on the columns of `deliveries`.
  static func delete(where condition: SQL) -> SQL {
    "DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE \(condition) ORDER BY id FOR UPDATE)"
  }

  /// Changes deliveries, in the same order.
  ///
  /// - Parameters:
  ///   - assignments: of columns of `deliveries`.
  ///   - condition: on these columns.
  static func edit(_ assignments: SQL, where condition: SQL) -> SQL {
    """
    UPDATE deliveries SET \(assignments)
    WHERE id IN (SELECT id FROM deliveries WHERE \(condition) ORDER BY id FOR UPDATE)
    """
  }

  private struct Target {
    let device: Device
    /// The recipient's unread notifications, up to ``InboxItem/maximumUnread``, for the badge of an iPhone.
    let badge: Int?
    /// In seconds.
    let pause: Double?
    let mayWakeApp: Bool
    var wakesApp = false
  }

  /// Rereads what may have changed since fan-out, for sends that are about to begin. No push may follow a block, a
  /// deletion or a logout that was confirmed before.
  ///
  /// - Returns: what to send to, by row; nil if the device must no longer get the notification. Rows that are no longer
  ///   leased are missing.
  private static func recheck(
    _ rows: [LeasedRow], in database: Database
  ) async throws -> [Int64: Result<Target?, any Error>] {
    var targets = try await reread(rows, in: database)
    // The first row of each phone that may be woken.
    var due: [Device.ID: Int64] = [:]
    for (id, target) in targets {
      guard case .success(let target?) = target, target.mayWakeApp else { continue }
      due[target.device.id] = min(due[target.device.id] ?? id, id)
    }
    guard !due.isEmpty else { return targets }
    let woken = try await noteWake(on: due.keys, in: database)
    // Once more, because the write took its time.
    targets = try await reread(rows, in: database)
    for device in woken {
      guard let id = due[device], case .success(var target?) = targets[id] else { continue }
      target.wakesApp = true
      targets[id] = .success(target)
    }
    return targets
  }

  private static func reread(
    _ rows: [LeasedRow], in database: Database
  ) async throws -> [Int64: Result<Target?, any Error>] {
    let found = try await database.pipeline(
      LeaseQueue.byIndex,
      """
      SELECT q.id,
        d.id IS NOT NULL AND s.id IS NOT NULL
          AND NOT EXISTS (SELECT FROM muted_notifications AS m WHERE m.user_id = q.recipient_id AND m.type = q.type)
          AND NOT EXISTS (SELECT FROM hidden AS h WHERE h.user_id = q.recipient_id AND h.hidden_id = q.person_id)
          AND NOT (
            q.type = \(Notice.Kind.eventReminder)
            AND q.created_at < now() - make_interval(secs => \(Double(Event.reminderLead)))
          )
          AND (
            q.guest_id IS NULL OR EXISTS (SELECT FROM visitors AS v WHERE v.id = q.guest_id)
            OR EXISTS (SELECT FROM users AS u WHERE u.id = q.guest_id)
          )
          AND NOT (\(isReplacedBadge)),
        d.id, d.platform, d.token, d.environment, d.topic, d.localizes, d.sealed_secret,
        CASE WHEN d.previous_secret_until > now() THEN d.sealed_previous_secret END, d.registered_at,
        CASE WHEN d.platform = 'ios' THEN (
          SELECT count(*)
          FROM (
            SELECT FROM user_stamps AS inbox
            JOIN notifications AS n ON n.recipient_id = inbox.user_id AND n.filed_at >= inbox.inbox_floor
            WHERE inbox.user_id = q.recipient_id AND n.read_at IS NULL AND NOT EXISTS (
              SELECT FROM hidden AS h WHERE h.user_id = n.recipient_id AND h.hidden_id = n.person_id
            )
            LIMIT \(InboxItem.maximumUnread)
          ) AS unread
        ) END,
        \(badgePause), coalesce(\(mayWakeApp), false)
      FROM \(queue.rows(of: rows.map(\.lease)))
      LEFT JOIN devices AS d ON d.id = q.device_id AND d.user_id = q.recipient_id
      LEFT JOIN sessions AS s ON s.id = d.session_id AND \(Session.isOpen("s"))
      """)[1]
    return Dictionary(
      uniqueKeysWithValues: try found.map { row -> (Int64, Result<Target?, any Error>) in
        let (id, isWanted): (Int64, Bool) = (try row[0], try row[1])
        guard isWanted else { return (id, .success(nil)) }
        return (
          id,
          Result {
            Target(
              device: try Device(row: row, from: 2), badge: try row[11], pause: try row[12], mayWakeApp: try row[13])
          }
        )
      })
  }
}

extension Device {
  /// - Parameter place: the index of its first column.
  fileprivate init(row: Row, from place: Int) throws {
    let secrets: [Data?] = [try row[place + 6], try row[place + 7]]
    self.init(
      id: try row[place], platform: try row[place + 1], token: try row[place + 2], environment: try row[place + 3],
      topic: try row[place + 4], localizes: try row[place + 5],
      registeredAt: try row[place + 8], sealedSecrets: secrets.compactMap { $0 })
  }
}

extension Device.Platform {
  fileprivate var channel: Capacity.Channel {
    switch self {
    case .ios: .ios
    case .android: .android
    case .webhook: .webhook
    case .log: .log
    }
  }
}

extension Push {
  fileprivate init(_ row: LeasedRow) throws {
    guard let createdAt = row.createdAt else { throw DeliveryFailure(description: "the row's time is out of range") }
    let (id, recipient, subject): (UUID, User.ID, UUID) = (
      try row.fields[0], try row.fields[1], try row.fields[3]
    )
    self.init(
      id: id.uuidString.lowercased(), type: try row.fields[2], subject: subject.uuidString.lowercased(),
      recipient: recipient.description,
      payload: Notice.rendered(try row.fields[4], at: .now()).text,
      createdAt: createdAt)
    let stored: String? = try row.fields[5]
    trace = stored.flatMap { Trace(stored: $0) }
  }
}
