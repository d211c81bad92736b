import Foundation
import Postgres

/// A phone or a webhook that a user has registered for notifications.
public struct Device: Sendable {
  public typealias ID = Identifier<Device>

  public enum Platform: String, CaseIterable, Sendable, SQLValue {
    case ios, android, webhook, log
  }

  /// Which of Apple's two services knows the token.
  public enum Environment: String, CaseIterable, Sendable, SQLValue {
    case production, sandbox
  }

  public let id: ID
  public let platform: Platform
  /// The provider's name for the device; a webhook's URL.
  public let token: String
  public let environment: Environment?
  /// The app's id, for an `ios` device.
  public let topic: String?
  /// Whether the app has the sentences of notifications in the user's language.
  public var localizes = false
  /// When an app last registered the token.
  public let registeredAt: Timestamp
  /// The secrets that sign a webhook's deliveries, sealed: the current one first, then the previous one while it is
  /// valid.
  let sealedSecrets: [Data]
}

/// Registering, listing and removing devices.
extension Device {
  /// An app's description of its device.
  struct Registration: Sendable {
    let platform: Platform
    let token: String
    let environment: Environment?
    let topic: String?
    let name: String?
    let localizes: Bool
    /// Replaces a webhook's secret with a new one.
    let rotatesSecret: Bool
  }

  /// A device as its owner sees it: without the token, which only the provider needs.
  struct Registered: Sendable {
    let id: ID
    let platform: Platform
    let environment: Environment?
    let topic: String?
    let name: String?
    let localizes: Bool
    let createdAt: Timestamp
    let session: Session.ID

    fileprivate static let columns: SQL =
      "d.id, d.platform, d.environment, d.topic, d.name, d.localizes, d.created_at, d.session_id"

    init(row: Row) throws {
      id = try row["id"]
      platform = try row["platform"]
      environment = try row["environment"]
      topic = try row["topic"]
      name = try row["name"]
      localizes = try row["localizes"]
      createdAt = try row["created_at"]
      session = try row["session_id"]
    }
  }

  /// Devices that one user may have.
  static let maximum = 20
  /// Seconds for which a webhook's deliveries are also signed with the previous secret, after it was replaced.
  static let secretOverlap = 86_400

  /// Devices whose sessions are open.
  private static func live(of user: User.ID) -> SQL {
    "devices AS d JOIN sessions AS s ON s.id = d.session_id WHERE d.user_id = \(user) AND \(Session.isOpen("s"))"
  }

  /// Newest first.
  static func list(of user: User.ID, page: PageRequest, in database: some Querying) async throws -> List<Registered> {
    try await List.read(
      page: page,
      query: Keyset(
        list: .devices, columns: Registered.columns, source: live(of: user), time: "d.created_at", id: "d.id",
        order: .descending),
      in: database, item: Registered.init(row:))
  }

  /// Registers a device for a user, or updates one of theirs. The device is removed when the session ends. Repeating
  /// this changes nothing. A phone's token that another user has registered passes to this user, under another id.
  ///
  /// - Returns: with the secret in clear text if it is new. It is not shown again.
  /// - Throws: ``AppError/tooManyDevices``, or ``AppError/sessionEnded``.
  static func register(
    _ new: Registration, for user: User.ID, by session: Session.ID, keys: SigningKeys, in change: Change
  ) async throws -> (device: Registered, isNew: Bool, secret: String?) {
    // The lock keeps the session open until the device exists and can be removed with it. It also makes two
    // registrations at the same time count each other's devices.
    guard try await change.lock(user, for: .update).contains(user) else { throw AppError.sessionEnded }
    try await Session.check(session, in: change)
    let secret = new.platform == .webhook ? WebhookSecret.fresh() : nil
    let sealed = try secret.map { try WebhookSecret.sealed($0, keys: keys) }
    let rotates = new.rotatesSecret
    // A phone's token passes from user to user. Many users may register the same webhook URL.
    let (conflict, others): (SQL, SQL) =
      new.platform == .webhook
      ? ("(user_id, token) WHERE platform = 'webhook'", "false")
      : (
        "(platform, token) WHERE platform <> 'webhook'",
        "platform = \(new.platform) AND token = \(new.token) AND platform <> 'webhook' AND user_id <> \(user)"
      )
    while true {
      let id = ID.new()
      let results = try await change.pipeline(
        // Nothing more reaches the device under its old id, neither from the queue nor from a send that is about to
        // begin.
        forgetting(where: others),
        """
        INSERT INTO devices AS d (
          id, user_id, session_id, platform, token, environment, topic, name, localizes, sealed_secret, created_at,
          registered_at
        )
        VALUES (
          \(id), \(user), \(session), \(new.platform), \(new.token), \(new.environment), \(new.topic), \(new.name),
          \(new.localizes), \(sealed), clock_timestamp(), clock_timestamp()
        )
        ON CONFLICT \(conflict) DO UPDATE
        SET session_id = excluded.session_id, environment = excluded.environment, topic = excluded.topic,
          name = excluded.name, localizes = excluded.localizes, registered_at = excluded.registered_at,
          sealed_secret = CASE WHEN \(rotates) THEN excluded.sealed_secret ELSE d.sealed_secret END,
          -- A rotation that is repeated because the response was lost keeps the secret that the receiver has.
          sealed_previous_secret = CASE
            WHEN \(rotates) AND (d.previous_secret_until > now()) IS NOT TRUE THEN d.sealed_secret
            ELSE d.sealed_previous_secret
          END,
          previous_secret_until = CASE
            WHEN \(rotates) AND (d.previous_secret_until > now()) IS NOT TRUE
              THEN now() + make_interval(secs => \(Double(secretOverlap)))
            ELSE d.previous_secret_until
          END
        WHERE d.user_id = excluded.user_id
        RETURNING \(Registered.columns)
        """,
        "SELECT count(*) FROM \(live(of: user))")
      // Another user registered the token in between: take it over in the next round.
      guard let row = results[1].first else { continue }
      let device = try Registered(row: row)
      let isNew = device.id == id
      let count: Int = try results[2].first.map { try $0[0] } ?? 0
      guard !isNew || count <= maximum else { throw AppError.tooManyDevices }
      return (device, isNew, isNew || rotates ? secret : nil)
    }
  }

  /// Removes one of a user's devices and the deliveries that wait for it.
  ///
  /// - Throws: ``AppError/deviceNotFound``
  static func remove(_ id: ID, of user: User.ID, in change: Change) async throws {
    guard try await !change.rows(forgetting(where: "id = \(id) AND user_id = \(user)")).isEmpty else {
      throw AppError.deviceNotFound
    }
  }

  /// Removes all webhooks, with their deliveries.
  public static func removeWebhooks(in database: Database) async throws {
    try await database.change { _ = try await $0.rows(forgetting(where: "platform = 'webhook'")) }
  }

  /// Deletes devices and their deliveries, and returns the ids of these devices.
  ///
  /// - Parameter condition: on the columns of `devices`.
  static func forgetting(where condition: SQL) -> SQL {
    // Rows are locked in id order, as workers do when they acknowledge several at once. They are deleted by recipient
    // and device.
    """
    WITH gone AS MATERIALIZED (
      DELETE FROM devices
      WHERE id IN (SELECT id FROM devices WHERE \(condition) ORDER BY id FOR UPDATE)
      RETURNING id, user_id
    ),
    locked AS MATERIALIZED (
      SELECT q.id
      FROM deliveries AS q
      JOIN gone ON gone.user_id = q.recipient_id AND gone.id = q.device_id
      ORDER BY q.id
      FOR UPDATE OF q
    ),
    withdrawn AS (
      DELETE FROM deliveries AS q
      USING gone
      WHERE q.recipient_id = gone.user_id AND q.device_id = gone.id AND (SELECT count(*) FROM locked) > 0
    )
    SELECT id FROM gone
    """
  }

  /// Deletes devices whose session has ended. Nothing more is sent to them.
  static func purge(atMost limit: Int, in database: Database) async throws -> Int {
    let left: SQL = """
      SELECT d.id
      FROM sessions AS s
      JOIN devices AS d ON d.session_id = s.id
      WHERE s.ended_at IS NOT NULL
      LIMIT \(limit)
      """
    return try await database.batch(Device.forgetting(where: "id IN (\(left))"))[0].count
  }
}

extension AppError {
  static let deviceNotFound = AppError(.notFound, "device-not-found", "There is no such device.")
  static let tooManyDevices = AppError(
    .conflict, "too-many-devices", "You already have \(Device.maximum) devices. Remove one first.")
}
