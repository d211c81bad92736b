import CLibpq

/// Statements that are sent together with one sync, and the results received so far. Its connection's lock protects it.
final class Batch {
  enum Step {
    /// Makes the server forget the prepared statement with this name.
    case deallocate(String)
    case prepare(PreparedStatements.Statement)
    case query(PreparedStatements.Statement)
  }

  /// The caller and its deadlines.
  struct Call {
    let reply: Reply<[Rows]>
    let sent: ContinuousClock.Instant
    /// When the caller gets a timeout.
    let deadline: ContinuousClock.Instant
    /// When a live server has responded. Later than the deadline if the caller spent time on another connection before.
    let limit: ContinuousClock.Instant
    /// When a live server has sent the first of several results.
    let firstResultBy: ContinuousClock.Instant
    /// The size of the parameters.
    let bytes: Int
  }

  /// Statements that are queued to be sent.
  struct Request {
    let statements: [SQL]
    let call: Call
  }

  let call: Call
  /// The strongest effect of its statements.
  private(set) var effect = SessionEffect.none
  private var steps: [Step] = []
  /// The step whose result comes next.
  private var position = 0
  private var rows: [Rows] = []
  private var error: PostgresError?
  /// The deadline passed and the caller got a timeout. The results are still to be read.
  private var isExpired = false

  init(_ request: Request) {
    call = request.call
    steps.reserveCapacity(request.statements.count)
    rows.reserveCapacity(request.statements.count)
  }

  // MARK: Sending

  /// Records what was sent.
  func append(_ step: Step) {
    steps.append(step)
    if case .query(let statement) = step { effect = max(effect, statement.effect) }
  }

  // MARK: Receiving

  /// Records the result of the next step.
  ///
  /// - Parameters:
  ///   - prepared: the statements of the connection.
  ///   - isReadOnlyServer: whether a write was rejected because the server accepts none.
  /// - Returns: false if the connection can no longer be used.
  func take(_ result: OpaquePointer, _ prepared: inout PreparedStatements, isReadOnlyServer: () -> Bool) -> Bool {
    guard position < steps.count else {
      PQclear(result)
      return false
    }
    let step = steps[position]
    let status = PQresultStatus(result)
    if case .prepare(let statement) = step { prepared.settle(statement, isPrepared: status == PGRES_COMMAND_OK) }
    switch status {
    case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY:
      guard case .query(let statement) = step else {
        PQclear(result)
        break
      }
      let handle = ResultHandle(result, columns: statement.columns)
      statement.note(handle.columns)
      rows.append(Rows(handle))
    case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH:
      PQclear(result)
      error = PostgresError(.misuse, "COPY cannot run in pipeline mode")
      return false
    case PGRES_PIPELINE_ABORTED:
      PQclear(result)
      if case .deallocate(let name) = step { prepared.keep(name) }
    default:
      var error = PostgresError(result: result)
      PQclear(result)
      guard error.sqlState != nil else { return false }
      if error.sqlState == "25006" { error.isFromReadOnlyServer = isReadOnlyServer() }
      switch step {
      case .query(let statement) where error.isStalePlan: prepared.forget(statement, isGone: error.isUnknownStatement)
      case .deallocate(let name) where !error.isUnknownStatement: prepared.keep(name)
      case .prepare, .deallocate, .query: break
      }
      self.error = self.error ?? error
    }
    return true
  }

  /// All results of the next step have been taken.
  func endStep() { position += 1 }

  // MARK: Ending

  /// The result of the whole batch, once the server has responded to its sync.
  ///
  /// - Parameter isUnconfirmed: whether a standby did not confirm a commit.
  func result(isUnconfirmed: Bool) -> Result<[Rows], any Error> {
    if isUnconfirmed, error == nil {
      error = PostgresError(.unknownOutcome, "the standby did not confirm the commit", mayHaveRun: true)
    }
    return error.map { .failure($0) } ?? .success(rows)
  }

  /// Why the batch failed when its connection closed.
  func failure(_ reason: PostgresError, inReadOnlySession isReadOnly: Bool) -> PostgresError {
    // The server may have sent the reason before it closed the connection.
    var reason = error ?? reason
    reason.mayHaveRun = true
    reason.isHarmless = isReadOnly && effect == .none
    return reason
  }

  /// Whether the deadline has passed. True only once.
  func expire(at now: ContinuousClock.Instant) -> Bool {
    guard call.deadline < now, !isExpired else { return false }
    isExpired = true
    return true
  }

  /// The texts of its statements, made only when they are read.
  var texts: some Sequence<String> {
    steps.lazy.compactMap { step in if case .query(let statement) = step { statement.key.text } else { nil } }
  }
}
