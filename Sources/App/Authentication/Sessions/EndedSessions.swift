import Logging
import Postgres
import ServiceLifecycle
import Synchronization

/// A copy, in each process, of the ended sessions whose access tokens may still be valid. Several times a second, it
/// reads the sessions that have ended since its last read, on its own connection. So requests need no query, and an
/// ended session stops everywhere within a second.
final class EndedSessions: Service {
  struct Copy {
    /// Two halves. An id leaves with its whole half, without a search, and never before its access tokens expire.
    var recent: Set<Session.ID> = []
    var earlier: Set<Session.ID> = []
    var turnedAt = ContinuousClock.now
    /// Sessions of earlier epochs have also ended.
    var epoch = 0
    var position: Position?
    /// When the last read began. The copy shows everything that was committed before.
    var readAt: ContinuousClock.Instant?
  }

  static let interval = Duration.milliseconds(250)
  /// Seconds in addition to an access token's lifetime: clocks that differ by 30 in each direction, a refresh that
  /// converges with one 10 before it, and a slow commit.
  static let margin = 120
  /// The minimum time between two log lines about refused requests.
  private static let logInterval = Duration.seconds(10)

  let database: Database
  /// How long an ended session must be known.
  let seconds: Int
  let isBehindPooler: Bool
  /// Rows per statement. More are read in pages.
  let pageLength: Int
  let copy = Mutex(Copy())
  private let maximumAge: Duration
  private let logger: Logger
  private let refusals = Mutex((count: 0, loggedAt: ContinuousClock.Instant?.none))
  private let madeAt = ContinuousClock.now

  /// - Parameters:
  ///   - lifetime: of access tokens, in seconds.
  ///   - maximumAge: a copy that is older is not used.
  init(
    _ configuration: Database.Configuration, lifetime: Int, maximumAge: Duration, pageLength: Int = 20_000,
    logger: Logger
  ) throws {
    var configuration = configuration
    configuration.sharedConnections = 1
    // A busy server may need this long to accept a connection. With a shorter limit, each attempt would fail, and this
    // process would have no copy.
    configuration.connectTimeout = min(configuration.connectTimeout, .seconds(2))
    configuration.acquireTimeout = .milliseconds(500)
    configuration.statementTimeout = .milliseconds(500)
    database = try Database(configuration)
    seconds = lifetime + Self.margin
    isBehindPooler = configuration.isBehindPooler
    self.pageLength = pageLength
    self.maximumAge = maximumAge
    self.logger = logger
  }

  /// Reads all ended sessions, if the database is available.
  func prepare() async {
    var isFailing = false
    await attempt(&isFailing)
  }

  /// Keeps the copy fresh until it is cancelled. Requests that finish during a shutdown still need it.
  func run() async {
    var isFailing = false
    while !Task.isCancelled {
      let next = ContinuousClock.now + Self.interval
      await attempt(&isFailing)
      // Ends early only by cancellation, which ends the loop.
      try? await Task.sleep(until: next)
    }
  }

  private func attempt(_ isFailing: inout Bool) async {
    do {
      try await read()
      if isFailing { logger.notice("the ended sessions can be read again") }
      isFailing = false
    } catch {
      if !isFailing, !Task.isCancelled {
        logger.warning("the ended sessions cannot be read", metadata: ["error": "\(error)"])
      }
      isFailing = true
    }
  }

  func close() {
    database.close()
  }

  /// - Throws: `session-ended`, or 503 while the copy is too old.
  func check(_ caller: AccessTokens.Caller) throws(AppError) {
    let (isEnded, readAt) = copy.withLock { copy in
      let isEnded =
        caller.epoch < copy.epoch || copy.recent.contains(caller.session) || copy.earlier.contains(caller.session)
      return (isEnded, copy.readAt)
    }
    guard isFresh(readAt) else {
      noteRefusal()
      throw .databaseUnavailable
    }
    if isEnded { throw .sessionEnded }
  }

  var isFresh: Bool { isFresh(copy.withLock { $0.readAt }) }

  /// The number of known ended sessions.
  var count: Int { copy.withLock { $0.recent.count + $0.earlier.count } }

  /// The time since the last read, or since the process started.
  var age: Duration { ContinuousClock.now - (copy.withLock { $0.readAt } ?? madeAt) }

  private func isFresh(_ readAt: ContinuousClock.Instant?) -> Bool {
    readAt.map { ContinuousClock.now - $0 <= maximumAge } ?? false
  }

  /// All requests fail alike. One log line every few seconds gives their number.
  private func noteRefusal() {
    let now = ContinuousClock.now
    let count = refusals.withLock { refusals -> Int? in
      refusals.count += 1
      if let loggedAt = refusals.loggedAt, now - loggedAt < Self.logInterval { return nil }
      defer { refusals = (0, now) }
      return refusals.count
    }
    guard let count else { return }
    logger.error(
      "refusing requests: the copy of the ended sessions is too old",
      metadata: ["requests": "\(count)", "age_seconds": "\(age / .seconds(1))"])
  }
}
