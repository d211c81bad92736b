extension Transaction {
  /// Runs a part of the transaction that can fail alone: an error of `body` undoes what it wrote, and is thrown. A
  /// caller that catches it can continue with the transaction.
  ///
  ///     do {
  ///       try await transaction.savepoint { try await transaction.rows("INSERT INTO tags VALUES (\(tag))") }
  ///     } catch let error as PostgresError where error.constraint == "tags_pkey" {
  ///       // The tag exists. Everything before the savepoint is kept.
  ///     }
  ///
  /// SAVEPOINT is sent with the first statement of the body, and its end with the next statement or with COMMIT.
  /// Savepoints can be nested. After a timeout or a cancellation, the whole transaction can only be rolled back.
  ///
  /// - Throws: the error of `body`.
  @discardableResult
  public func savepoint<Value>(_ body: () async throws -> Value) async throws -> Value {
    let savepoint = try beginSavepoint()
    do {
      let value = try await body()
      end(savepoint)
      return value
    } catch {
      undo(savepoint)
      throw error
    }
  }

  private struct Savepoint {
    /// How many savepoints are open, with this one. It is a part of the name, so that one that was never sent is not
    /// taken for an outer one.
    let depth: Int
    /// The state before it.
    let before: State

    private var name: SQL { "s\(unescaped: String(depth))" }
    var begin: SQL { "SAVEPOINT \(name)" }
    var undo: [SQL] { ["ROLLBACK TO SAVEPOINT \(name)", end] }
    var end: SQL { "RELEASE SAVEPOINT \(name)" }
  }

  private func beginSavepoint() throws -> Savepoint {
    try state.withLock { state in
      guard state.phase != .ended else { throw PostgresError(.misuse, "the transaction has ended") }
      let savepoint = Savepoint(depth: state.depth + 1, before: state)
      state.depth += 1
      state.written.append(savepoint.begin.commented)
      return savepoint
    }
  }

  private func end(_ savepoint: Savepoint) {
    state.withLock { state in
      let before = savepoint.before
      state.depth = before.depth
      let isUnused = state.sends == before.sends && state.written.count == before.written.count + 1
      if isUnused { state.written.removeLast() } else { state.written.append(savepoint.end.commented) }
    }
  }

  /// Forgets the statements queued since the savepoint, and queues those that undo the sent ones.
  private func undo(_ savepoint: Savepoint) {
    state.withLock { state in
      let before = savepoint.before
      let isSent = state.sends > before.sends
      (state.depth, state.problem, state.last) = (before.depth, before.problem, before.last)
      state.written = isSent ? savepoint.undo.commented : before.written
    }
  }
}
