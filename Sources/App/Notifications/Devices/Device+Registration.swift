import Foundation
import Postgres

/// Devices as their owners register, see and remove them.
extension Device {
  /// What an app says of its device.
  struct Registration: Sendable {
    let platform: Platform
    let token: String
    let environment: Environment?
    let topic: String?
    let name: String?
    /// Of a webhook: exchanges the secret for a new one.
    let rotatesSecret: Bool
  }

  /// A device as its owner sees it: without the token, which only the provider needs.
  struct Registered: Sendable {
    let id: ID
    let platform: Platform
    let environment: Environment?
    let topic: String?
    let name: String?
    let createdAt: Timestamp
    let session: Session.ID

    fileprivate static let columns: SQL =
      "d.id, d.platform, d.environment, d.topic, d.name, d.created_at, d.session_id"

    init(row: Row) throws {
      id = try row["id"]
      platform = try row["platform"]
      environment = try row["environment"]
      topic = try row["topic"]
      name = try row["name"]
      createdAt = try row["created_at"]
      session = try row["session_id"]
    }
  }

  /// How many one user may have.
  static let maximum = 20
  /// For how many seconds a webhook's deliveries are signed with the secret before, too, once it is exchanged.
  static let secretOverlap = 86_400

  /// Those of sessions that go on.
  private static func live(of user: User.ID) -> SQL {
    "devices AS d JOIN sessions AS s ON s.id = d.session_id WHERE d.user_id = \(user) AND \(Session.isOpen("s"))"
  }

  /// The newest first.
  static func list(of user: User.ID, page: PageRequest, in database: some Querying) async throws -> List<Registered> {
    try await List.read(
      page: page,
      query: Keyset(
        list: .devices, columns: Registered.columns, source: live(of: user), time: "d.created_at", id: "d.id",
        order: .descending),
      in: database, item: Registered.init(row:))
  }

  /// Registers a device for a user, whose session it ends with; or changes one of theirs. Repeating it changes nothing. A
  /// phone's token that another user has registered passes to this one, under another id.
  ///
  /// - Returns: with the secret in clear if there is a new one, which is not shown again.
  /// - Throws: ``AppError/tooManyDevices``, or ``AppError/sessionEnded``.
  static func register(
    _ new: Registration, for user: User.ID, by session: Session.ID, keys: SigningKeys, in change: Change
  ) async throws -> (device: Registered, isNew: Bool, secret: String?) {
    // Nobody ends the session before the device is there to be forgotten with it; and two that are registered at once are
    // counted one after the other.
    guard try await change.lock(user, for: .update).contains(user) else { throw AppError.sessionEnded }
    try await Session.check(session, in: change)
    let secret = new.platform == .webhook ? WebhookSecret.fresh() : nil
    let sealed = try secret.map { try WebhookSecret.sealed($0, keys: keys) }
    let rotates = new.rotatesSecret
    // A phone's token passes from user to user. A webhook's URL may be registered by many.
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
        // Under its old id nothing more reaches it, neither from the queue nor from a send about to begin.
        forgetting(where: others),
        """
        INSERT INTO devices AS d (
          id, user_id, session_id, platform, token, environment, topic, name, sealed_secret, created_at
        )
        VALUES (
          \(id), \(user), \(session), \(new.platform), \(new.token), \(new.environment), \(new.topic), \(new.name),
          \(sealed), clock_timestamp()
        )
        ON CONFLICT \(conflict) DO UPDATE
        SET session_id = excluded.session_id, environment = excluded.environment, topic = excluded.topic,
          name = excluded.name,
          sealed_secret = CASE WHEN \(rotates) THEN excluded.sealed_secret ELSE d.sealed_secret END,
          -- Asked for again because the response was lost, it leaves the one that the receiver has.
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
      // Another user has registered the token in between: take it from them.
      guard let row = results[1].first else { continue }
      let device = try Registered(row: row)
      let isNew = device.id == id
      let count: Int = try results[2].first.map { try $0[0] } ?? 0
      guard !isNew || count <= maximum else { throw AppError.tooManyDevices }
      return (device, isNew, isNew || rotates ? secret : nil)
    }
  }

  /// Removes one of a user's devices, and what waits for it.
  ///
  /// - Throws: ``AppError/deviceNotFound``
  static func remove(_ id: ID, of user: User.ID, in change: Change) async throws {
    guard try await !change.rows(forgetting(where: "id = \(id) AND user_id = \(user)")).isEmpty else {
      throw AppError.deviceNotFound
    }
  }

  /// Deletes devices and their deliveries. Its rows are those devices.
  ///
  /// - Parameter condition: on `devices`.
  static func forgetting(where condition: SQL) -> SQL {
    // Rows are locked in the order of their ids, in which workers acknowledge several at once. They are deleted by what
    // they are for.
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

  /// Forgets devices whose session has ended: nothing is sent to them any more.
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
  static let deviceNotFound = AppError(.notFound, "device-not-found", "You have no such device.")
  static let tooManyDevices = AppError(
    .conflict, "too-many-devices", "You have \(Device.maximum) devices: remove one first.")
}
