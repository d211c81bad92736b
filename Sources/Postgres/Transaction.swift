import Synchronization

/// An open transaction: made by ``Database/transaction(repeating:_:)`` and used only inside its body, by one task.
public final class Transaction: Querying {
  private enum Phase {
    /// Nothing was sent: not even BEGIN.
    case fresh
    case begun
    case ended
  }

  private struct State {
    var phase = Phase.fresh
    var last: [SQL] = []
  }

  @TaskLocal static var isCurrent = false
  private let connection: Connection
  private let timeout: Duration
  private let state = Mutex(State())

  init(_ connection: Connection, timeout: Duration) {
    self.connection = connection
    self.timeout = timeout
  }

  public func send(_ statements: [SQL]) async throws -> [Rows] {
    let isFirst = try begin()
    do {
      let answers = try await connection.submit(isFirst ? ["BEGIN"] + statements : statements, timeout: timeout).value()
      return isFirst ? Array(answers.dropFirst()) : answers
    } catch var error as PostgresError {
      // What was not committed has no effect, however it ended.
      error.mayHaveRun = false
      throw error
    }
  }

  /// Statements to run last, in the round trip of COMMIT. Their errors roll everything back.
  public func atCommit(_ statements: SQL...) {
    state.withLock { $0.last += statements }
  }

  private func begin() throws -> Bool {
    try state.withLock { state in
      switch state.phase {
      case .fresh:
        state.phase = .begun
        return true
      case .begun:
        return false
      case .ended:
        throw PostgresError(.misuse, "the transaction has ended")
      }
    }
  }

  func commit() async throws {
    let (phase, last) = state.withLock { state in
      defer { state.phase = .ended }
      return (state.phase, state.last)
    }
    if phase == .fresh, last.isEmpty { return }
    let statements = (phase == .fresh ? ["BEGIN"] : []) + last + ["COMMIT"]
    let tag: String?
    do {
      // Never cancelled: an answer that is not waited for would be an outcome that nobody knows.
      tag = try await connection.submit(statements, timeout: timeout).uncancellableValue().last?.commandTag
    } catch let error as PostgresError where error.mayHaveRun || error.endsConnection {
      throw PostgresError(.unknownOutcome, "the outcome of COMMIT is unknown: \(error.message)", mayHaveRun: true)
    }
    guard tag == "COMMIT" else {
      throw PostgresError(.transactionAborted, "COMMIT was answered by \(tag ?? "nothing")")
    }
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
      _ = try await connection.submit(["ROLLBACK"], timeout: timeout).uncancellableValue()
    } catch {
      connection.close()
    }
  }

  /// Stops the statement that nobody waits for, then rolls back. A server that does not react in time is hung up on.
  func abandon() async {
    await connection.cancelRunning()
    do {
      _ = try await connection.submit(["ROLLBACK"], timeout: .seconds(5)).uncancellableValue()
    } catch {
      connection.close()
    }
  }
}
