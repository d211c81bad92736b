/// How much a transaction sees of others that commit while it runs.
public enum IsolationLevel: Sendable {
  /// Each statement sees the changes that were committed before it began.
  case readCommitted
  /// All statements see the changes that were committed before the first one. An UPDATE of a row that has changed since
  /// fails with SQLSTATE 40001: see ``PostgresError/isRetryable``.
  case repeatableRead
  /// As if transactions ran one after the other. One that would break this fails with SQLSTATE 40001, at COMMIT at the
  /// latest.
  case serializable

  /// The statement that begins a transaction.
  ///
  /// - Parameter level: nil for the session's default.
  static func begin(_ level: IsolationLevel?, isReadOnly: Bool) -> SQL {
    switch (level, isReadOnly) {
    case (nil, false): "BEGIN"
    case (nil, true): "BEGIN READ ONLY"
    case (.readCommitted, false): "BEGIN ISOLATION LEVEL READ COMMITTED"
    case (.readCommitted, true): "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"
    case (.repeatableRead, false): "BEGIN ISOLATION LEVEL REPEATABLE READ"
    case (.repeatableRead, true): "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    case (.serializable, false): "BEGIN ISOLATION LEVEL SERIALIZABLE"
    case (.serializable, true): "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY"
    }
  }
}
