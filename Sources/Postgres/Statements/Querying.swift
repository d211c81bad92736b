/// Something that runs statements: a ``Database`` or a ``Transaction``.
public protocol Querying: Sendable {
  /// Sends the statements in one round trip and returns the result of each. Throws the first error.
  func send(_ statements: [SQL]) async throws -> [Rows]
}

extension Querying {
  /// All rows of one statement.
  @discardableResult
  public func rows(_ sql: SQL) async throws -> Rows {
    try await send([sql])[0]
  }

  /// The first row, or nil if there is none.
  public func first(_ sql: SQL) async throws -> Row? {
    try await rows(sql).first
  }

  /// The single column of the first row, or nil if there is no row.
  public func value<Value: SQLValue>(_ sql: SQL, as: Value.Type = Value.self) async throws -> Value? {
    try await first(sql).map { try $0[0] as Value }
  }

  /// Several statements in one round trip, in order. An error in one skips the following ones.
  @discardableResult
  public func pipeline(_ statements: SQL...) async throws -> [Rows] {
    try await send(statements)
  }
}
