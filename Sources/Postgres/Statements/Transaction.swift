/// An open transaction: made by ``Database/transaction(repeating:_:)`` and used only inside its body, by one task.
public final class Transaction: Querying {
  private enum Phase {
    /// Nothing was sent: not even BEGIN.
    case fresh
    case begun
    /// Nobody knows whether one of its statements ran: its wait was cut short.
    case uncertain
    case ended
  }

  private struct State {
    var phase = Phase.fresh
    /// Waiting for a statement to travel with.
    var written: [SQL] = []
    /// Why one of them can never be sent, nor what comes after it.
    var problem: PostgresError?
    var last: [SQL] = []
  }

  /// The one whose body the task is in.
  @TaskLocal static var current: Transaction?
  /// The database that it was begun on.
  let database: Database
  private let connection: Connection
  private let state = Lock(State())

  init(_ connection: Connection, of database: Database) {
    self.connection = connection
    self.database = database
  }

  var isEnded: Bool {
    state.withLock { $0.phase == .ended }
  }

  /// Sends the statements in one round trip, the transaction's first with BEGIN, and returns what each answered.
  ///
  /// - Throws: ``PostgresError``, the first among them, or `CancellationError`. Only a savepoint lets the transaction go on
  ///   after an error of the server's, and nothing after the end of a wait.
  public func send(_ statements: [SQL]) async throws -> [Rows] {
    // Refused before BEGIN is taken for sent.
    if let problem = statements.lazy.compactMap(\.problem).first { throw problem }
    // Sent under the lock, which never waits: of two statements at once, none can overtake BEGIN or follow COMMIT.
    let (reply, count) = try state.withLock { state in
      switch state.phase {
      case .fresh, .begun:
        if let problem = state.problem { throw problem }
        let before = (state.phase == .fresh ? ["BEGIN"] : []) + state.written
        (state.phase, state.written) = (.begun, [])
        let timeout = database.configuration.timeout(of: before.count + statements.count)
        return (connection.submit(before + statements, timeout: timeout), before.count)
      case .uncertain:
        throw Self.uncertain
      case .ended:
        throw PostgresError(.misuse, "the transaction has ended")
      }
    }
    do {
      return Array(try await reply.value().dropFirst(count))
    } catch var error as PostgresError {
      if error.kind == .timeout { giveUp() }
      // What was not committed has no effect, however it ended.
      error.mayHaveRun = false
      throw error
    } catch {
      giveUp()
      throw error
    }
  }

  private static let uncertain = PostgresError(
    .transactionAborted, "a statement of this transaction was given up on: it can only be rolled back")

  /// A body that swallows a timeout must not commit what it does not know.
  private func giveUp() {
    state.withLock { if $0.phase == .begun { $0.phase = .uncertain } }
  }

  /// A statement whose answer is not needed: it leaves with the next one, or with COMMIT, whose call throws its error.
  ///
  /// - Throws: ``PostgresError`` of kind `misuse` after the transaction's end.
  public func write(_ statement: SQL) throws {
    try state.withLock { state in
      guard state.phase != .ended else { throw PostgresError(.misuse, "the transaction has ended") }
      state.problem = state.problem ?? statement.problem
      state.written.append(statement)
    }
  }

  /// Statements to run last, in the round trip of COMMIT. Their errors roll everything back.
  public func atCommit(_ statements: SQL...) {
    atCommit(statements)
  }

  func atCommit(_ statements: [SQL]) {
    state.withLock { $0.last += statements }
  }

  /// - Returns: what the statements given to ``atCommit(_:)`` answered.
  func commit() async throws -> [Rows] {
    let (reply, count) = try state.withLock { state -> (Reply<[Rows]>?, Int) in
      guard state.phase != .uncertain else { throw Self.uncertain }
      if let problem = state.problem { throw problem }
      if state.phase == .fresh, state.written.isEmpty, state.last.isEmpty {
        state.phase = .ended
        return (nil, 0)
      }
      let before = (state.phase == .fresh ? ["BEGIN"] : []) + state.written
      state.phase = .ended
      let timeout = database.configuration.timeout(of: before.count + state.last.count + 1)
      return (connection.submit(before + state.last + ["COMMIT"], timeout: timeout), state.last.count)
    }
    guard let reply else { return [] }
    let answers: [Rows]
    do {
      // Never cancelled: an answer that is not waited for would be an outcome that nobody knows.
      answers = try await reply.uncancellableValue()
    } catch let error as PostgresError where error.mayHaveRun || error.endsConnection {
      throw PostgresError(.unknownOutcome, "the outcome of COMMIT is unknown: \(error.message)", mayHaveRun: true)
    }
    let tag = answers.last?.commandTag
    guard tag == "COMMIT" else {
      throw PostgresError(.transactionAborted, "COMMIT was answered by \(tag ?? "nothing")")
    }
    return answers.dropLast().suffix(count)
  }

  /// Undoes everything and waits until it is undone, so that a repeated attempt does not meet its own locks.
  func rollback() async {
    let phase = state.withLock { state in
      defer { state.phase = .ended }
      return state.phase
    }
    // A COMMIT whose batch failed leaves the transaction open in failed state, so an ended one is rolled back too.
    guard phase != .fresh, connection.isOpen, !connection.isIdle else { return }
    do {
      let timeout = database.configuration.timeout(of: 1)
      _ = try await connection.submit(["ROLLBACK"], timeout: timeout).uncancellableValue()
    } catch {
      connection.close()
    }
  }

  /// Stops the statement that nobody waits for, then rolls back. A server that does not react in time is hung up on.
  ///
  /// The connection's next owner is safe from the request: it is through, and a round trip came after it, or there is no
  /// next owner.
  func abandon() async {
    state.withLock { $0.phase = .ended }
    guard await connection.cancelRunning(within: .seconds(2)) else {
      connection.close()
      return
    }
    do {
      _ = try await connection.submit(["ROLLBACK"], timeout: .seconds(5)).uncancellableValue()
    } catch {
      connection.close()
    }
  }
}
