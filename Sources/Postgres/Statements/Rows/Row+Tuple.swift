extension Row {
  /// All columns, in order, as a tuple:
  ///
  ///     let (id, title) = try row.decode((UUID, String).self)
  ///     let (count, latest): (Int, Timestamp?) = try row.decode()
  ///
  /// - Throws: ``PostgresError`` of kind `decoding`, which names the column, if a value does not fit, or if there are
  ///   more or fewer columns.
  public func decode<First: SQLValue, Second: SQLValue, each Other: SQLValue>(
    _ type: (First, Second, repeat each Other).Type = (First, Second, repeat each Other).self
  ) throws -> (First, Second, repeat each Other) {
    var columns = 2
    for _ in repeat (each Other).self { columns += 1 }
    guard result.names.count == columns else {
      let known = result.names.joined(separator: ", ")
      throw PostgresError(.decoding, "there are \(result.names.count) columns (\(known)), wanted \(columns)")
    }
    var place = 1
    func next<Value: SQLValue>(_ type: Value.Type) throws -> Value {
      place += 1
      return try self[place]
    }
    return (try self[0], try self[1], repeat try next((each Other).self))
  }
}

extension Rows {
  /// Each row as a tuple: see ``Row/decode(_:)``.
  public func decode<First: SQLValue, Second: SQLValue, each Other: SQLValue>(
    _ type: (First, Second, repeat each Other).Type = (First, Second, repeat each Other).self
  ) throws -> [(First, Second, repeat each Other)] {
    try map { try $0.decode(type) }
  }
}
