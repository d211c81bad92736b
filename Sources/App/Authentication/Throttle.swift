import HTTPServer
import Postgres

/// Slows down callers that repeatedly fail to authenticate, for example with a password. After a few failures, each
/// further one doubles the wait until the next attempt. Failures are counted in the database, by its clock, so all
/// processes count together. An open session is not throttled. Actions that need no authentication, such as requests
/// for mails, are counted in the same way.
struct Throttle: Sendable {
  /// The subject of a count. Each kind has its own label, so that failures of one kind never block another.
  struct Key: Sendable {
    fileprivate let label: String
    fileprivate let subject: String
    /// The number of attempts without a wait.
    fileprivate let free: Int
    /// Seconds to wait after the first attempt beyond that.
    fileprivate let firstWait: Double
    /// Whether a success clears the failures before it. Otherwise a success just does not count.
    fileprivate var isClearedBySuccess = false
    /// Whether successful attempts are counted instead of failed ones.
    fileprivate var countsSuccesses = false
    /// Seconds in which a count halves.
    fileprivate var halfLife = Double.infinity

    /// The text that was given as a login. Not the account: unknown logins must be slowed down alike, and the throttle
    /// must not reveal whether a name and an address belong to one account.
    static func login(_ login: Login) -> Key {
      Key(label: "login", subject: login.key, free: 5, firstWait: 1, isClearedBySuccess: true)
    }

    /// The address that failed logins come from. A success clears nothing, because an attacker can log in to their own
    /// account between two guesses.
    static func logins(from address: String) -> Key { from(address, "logins") }

    /// The address that accounts are created from.
    static func registrations(from address: String) -> Key { from(address, "registrations", free: 50) }

    /// The address that password resets are requested from.
    static func resets(from address: String) -> Key { from(address, "resets from") }

    /// The address that requests codes, or that sends wrong ones. Each account also has a count: ``SignInCode``.
    static func codeRequests(from address: String) -> Key { from(address, "code requests", free: 200) }
    static func codes(from address: String) -> Key { from(address, "codes") }

    /// An IPv6 address counts as its whole /64, which any subscriber can get. A whole town may share one IPv4 address,
    /// so its count fades.
    private static func from(_ address: String, _ label: String, free: Int = 20) -> Key {
      Key(label: label, subject: IPAddress(address)?.network ?? address, free: free, firstWait: 1, halfLife: 3600)
    }

    /// Reauthentication by a signed-in user. Counted by session, so that a stolen access token cannot lock out the
    /// owner.
    static func reauthentication(_ session: Session.ID) -> Key {
      Key(label: "reauthentication", subject: session.description, free: 5, firstWait: 1, isClearedBySuccess: true)
    }

    /// Sessions that start with a provider's token, which is valid more than once.
    static func sessions(of identity: Identity) -> Key {
      sessions("sessions", of: "\(identity.provider.rawValue):\(identity.subject)")
    }

    /// Sessions that start with a password, by the text that was given as a login. Each costs a hash and a row.
    static func sessions(by login: Login) -> Key {
      var key = sessions("sessions by", of: login.key)
      key.countsSuccesses = true
      return key
    }

    private static func sessions(_ label: String, of subject: String) -> Key {
      Key(label: label, subject: subject, free: 20, firstWait: 1, halfLife: 3600)
    }

    /// Accounts that are created with an address. Each of them sends a mail to it.
    static func registrations(with address: EmailAddress) -> Key { mails("registrations with", address.key) }

    /// Mails that users send to a new address that they want to use.
    static func changes(to address: EmailAddress) -> Key { mails("changes to", address.key) }
    static func changes(by user: User.ID) -> Key { mails("changes by", user.description) }

    private static func mails(_ label: String, _ subject: String) -> Key {
      Key(label: label, subject: subject, free: 5, firstWait: 60)
    }
  }

  /// In seconds.
  private static let maximumWait = 900.0

  let database: Database
  /// False for load tests, which log in more often than users do.
  let isOn: Bool

  /// Counts an action that needs no authentication but is limited.
  ///
  /// - Throws: ``AppError/tooManyAttempts`` with the seconds to wait. The action is then not counted.
  func count(_ keys: Key...) async throws {
    if isOn { _ = try await begin(keys) }
  }

  /// Runs an attempt unless one of its keys is blocked. The attempt counts for each key before it begins, so no more
  /// concurrent attempts pass than sequential ones would. A refused attempt does not count.
  ///
  /// A value from `body` is a success, and nil a failure. Each key counts one of the two: see ``Key/countsSuccesses``.
  /// An error is neither and does not count. But if the caller disconnects halfway, or the process dies, the attempt
  /// counts.
  ///
  /// - Throws: ``AppError/tooManyAttempts`` with the seconds to wait, or the body's error.
  func attempt<Value: Sendable>(_ keys: Key..., body: () async throws -> Value?) async throws -> Value? {
    guard isOn else { return try await body() }
    let blocks = try await begin(keys)
    let value: Value?
    do {
      value = try await body()
    } catch {
      // An attempt that cannot be taken back expires in a day. The body's error says more than this one would.
      do { try await settle(keys, blocks, isSuccess: false) } catch {}
      throw error
    }
    let uncounted = zip(keys, blocks).filter { key, _ in key.countsSuccesses == (value == nil) }
    if !uncounted.isEmpty {
      try await settle(uncounted.map(\.0), uncounted.map(\.1), isSuccess: value != nil)
    }
    return value
  }

  /// Counts a failure for each key, unless one of them is blocked.
  ///
  /// - Returns: until when this blocks each key.
  private func begin(_ keys: [Key]) async throws -> [Timestamp] {
    let wait: SQL = """
      SELECT coalesce(extract(epoch FROM max(t.blocked_until) - clock_timestamp()), 0)::float8
      FROM throttles AS t
      WHERE t.key IN (SELECT key FROM (\(Self.rows(keys))) AS keys)
      """
    // This reads before any lock is taken, so a flood of refused attempts costs only its reads.
    let seconds: Double = try await database.value(wait) ?? 0
    guard seconds <= 0 else { throw AppError.tooManyAttempts.waiting(seconds) }

    // All rows are locked in one order, so that two attempts never deadlock. The next statement judges them, and sees
    // the attempts counted while this one waited. A condition that is never true still locks.
    let results = try await database.batch(
      """
      INSERT INTO throttles (key, failures, blocked_until, expires_at)
      SELECT DISTINCT key, 0, statement_timestamp(), statement_timestamp()
      FROM (\(Self.rows(keys))) AS keys
      ORDER BY key
      ON CONFLICT (key) DO UPDATE SET failures = throttles.failures WHERE false
      """,
      """
      WITH counted AS (
        SELECT t.key, keys.place, keys.free, keys.first_wait, t.blocked_until > statement_timestamp() AS is_blocked,
          CASE
            WHEN t.expires_at <= statement_timestamp() THEN 1
            ELSE 1 + t.failures * 0.5 ^ (greatest(extract(
              epoch FROM statement_timestamp() - (t.expires_at - interval '24 hours')), 0)::float8 / keys.half_life)
          END AS failures
        FROM (\(Self.rows(keys))) AS keys
        JOIN throttles AS t ON t.key = keys.key
      )
      UPDATE throttles AS t
      SET failures = counted.failures,
        blocked_until = statement_timestamp() + make_interval(secs => CASE
          WHEN counted.failures <= counted.free THEN 0
          ELSE least(\(Self.maximumWait), counted.first_wait * 2 ^ least(counted.failures - counted.free - 1, 20)::float8)
        END),
        expires_at = statement_timestamp() + interval '24 hours'
      FROM counted
      WHERE t.key = counted.key AND NOT EXISTS (SELECT FROM counted WHERE is_blocked)
      RETURNING counted.place, t.blocked_until
      """,
      wait)
    guard !results[1].isEmpty else {
      let seconds: Double? = try results[2].first?[0]
      throw AppError.tooManyAttempts.waiting(seconds ?? 0)
    }
    let blocks = try results[1].map { row -> (place: Int, until: Timestamp) in (try row[0], try row[1]) }
    return blocks.sorted { $0.place < $1.place }.map(\.until)
  }

  /// Takes back an attempt and the block that it caused, after a success or an error.
  private func settle(_ keys: [Key], _ blocks: [Timestamp], isSuccess: Bool) async throws {
    let isForgotten = keys.map { isSuccess && $0.isClearedBySuccess }
    try await database.batch(
      """
      WITH attempt AS (
        SELECT keys.key, keys.free, own.is_forgotten, own.blocked_until
        FROM (\(Self.rows(keys))) AS keys
        JOIN unnest(\(isForgotten), \(blocks)) WITH ORDINALITY AS own (is_forgotten, blocked_until, place)
          ON own.place = keys.place
      ), locked AS MATERIALIZED (
        SELECT t.key
        FROM throttles AS t
        WHERE t.key IN (SELECT key FROM attempt)
        ORDER BY t.key
        FOR NO KEY UPDATE
      )
      UPDATE throttles AS t
      SET failures = CASE WHEN attempt.is_forgotten THEN 0 ELSE greatest(t.failures - 1, 0) END,
        blocked_until = CASE
          WHEN attempt.is_forgotten OR t.failures - 1 <= attempt.free OR t.blocked_until = attempt.blocked_until
          THEN least(t.blocked_until, statement_timestamp()) ELSE t.blocked_until
        END,
        expires_at = CASE
          WHEN attempt.is_forgotten OR t.failures <= 1 THEN statement_timestamp() ELSE t.expires_at
        END
      FROM locked
      JOIN attempt ON attempt.key = locked.key
      WHERE t.key = locked.key
      """)
  }

  /// The keys as they are stored: digests, so that no one reads names by accident. They are kept for a day, and do not
  /// protect against someone who has a list of names. All spellings of a login or an address have one subject: see
  /// ``Login/key`` and ``EmailAddress/key``.
  private static func rows(_ keys: [Key]) -> SQL {
    """
    SELECT sha256(convert_to(label || ':' || subject, 'UTF8')) AS key, free, first_wait, half_life, place
    FROM unnest(
      \(keys.map(\.label)), \(keys.map(\.subject)), \(keys.map(\.free)), \(keys.map(\.firstWait)),
      \(keys.map(\.halfLife))
    ) WITH ORDINALITY AS named (label, subject, free, first_wait, half_life, place)
    """
  }

  /// Deletes expired counts.
  ///
  /// - Returns: how many counts it deleted.
  static func purge(atMost limit: Int, in database: Database) async throws -> Int {
    try await database.purge("throttles", key: "key", by: "expires_at", upTo: "now()", atMost: limit)
  }
}

extension AppError {
  static let tooManyAttempts = AppError(
    .tooManyRequests, "too-many-attempts", "Too many attempts. Try again later.")

  func waiting(_ seconds: Double) -> AppError {
    var error = self
    error.retryAfter = max(1, Int(seconds.rounded(.up)))
    return error
  }
}
