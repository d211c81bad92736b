import Logging
import Postgres
import ServiceLifecycle
import Synchronization

/// The ended sessions that were used so recently that access tokens of theirs would still pass: a copy in each process,
/// re-read several times a second on a connection of its own, so that a request asks no database and an ended session stops
/// everywhere within a second.
final class EndedSessions: Service {
  private struct Copy {
    var ids: Set<Session.ID> = []
    /// When the read that brought them was begun: what was committed before is in it.
    var readAt: ContinuousClock.Instant?
  }

  private static let interval = Duration.milliseconds(250)
  /// Beside an access token's life: the clocks' disagreement, and a refresh that converges with one before it.
  private static let margin = 60

  private let database: Database
  private let seconds: Int
  private let maximumAge: Duration
  private let logger: Logger
  private let copy = Mutex(Copy())

  /// - Parameters:
  ///   - lifetime: of access tokens, in seconds.
  ///   - maximumAge: of a copy that is still believed.
  init(_ configuration: Database.Configuration, lifetime: Int, maximumAge: Duration, logger: Logger) throws {
    var configuration = configuration
    configuration.lanes = 1
    configuration.connectTimeout = .milliseconds(500)
    configuration.waitTimeout = .milliseconds(500)
    configuration.statementTimeout = .milliseconds(500)
    database = try Database(configuration)
    seconds = lifetime + Self.margin
    self.maximumAge = maximumAge
    self.logger = logger
  }

  /// Keeps the copy fresh until it is cancelled: requests that finish during a shutdown still need it.
  func run() async {
    var isFailing = false
    while !Task.isCancelled {
      let next = ContinuousClock.now + Self.interval
      do {
        try await read()
        isFailing = false
      } catch {
        if !isFailing, !Task.isCancelled {
          logger.warning("the ended sessions cannot be read", metadata: ["error": "\(error)"])
        }
        isFailing = true
      }
      // Ends early only by cancellation, which ends the loop.
      try? await Task.sleep(until: next)
    }
  }

  func read() async throws {
    let start = ContinuousClock.now
    let rows = try await database.rows(
      """
      SELECT id FROM sessions
      WHERE ended_at IS NOT NULL AND rotated_at > clock_timestamp() - make_interval(secs => \(Double(seconds)))
      """)
    let ids = Set(try rows.map { try $0[0] as Session.ID })
    copy.withLock { $0 = Copy(ids: ids, readAt: start) }
  }

  func close() {
    database.close()
  }

  /// - Throws: `session-ended`, or 503 while the copy is too old to tell.
  func check(_ session: Session.ID) throws(AppError) {
    let (isEnded, readAt) = copy.withLock { ($0.ids.contains(session), $0.readAt) }
    if !isFresh(readAt) { throw .databaseAway }
    if isEnded { throw .sessionEnded }
  }

  var isFresh: Bool { isFresh(copy.withLock { $0.readAt }) }

  private func isFresh(_ readAt: ContinuousClock.Instant?) -> Bool {
    readAt.map { ContinuousClock.now - $0 <= maximumAge } ?? false
  }
}
