import CLibpq

/// Writes rows for COPY in PostgreSQL's binary format. About five times as fast as INSERT.
public struct CopyWriter {
  private let send: ([UInt8]) throws -> Void
  private var bytes: [UInt8] = []
  /// The number of rows written so far.
  public private(set) var count = 0

  init(_ send: @escaping ([UInt8]) throws -> Void) {
    self.send = send
    bytes = Array("PGCOPY\n".utf8) + [0xff, 0x0d, 0x0a, 0x00]
    bytes += Array(repeating: 0, count: 8)  // no flags, no header extension
  }

  /// Writes one row. It needs a value for each column, of exactly the column's type.
  public mutating func append<each Value: SQLValue>(_ values: repeat each Value) throws {
    let start = begin()
    var columns: Int16 = 0
    for value in repeat each values { try append(value, as: &columns, of: start) }
    try end(start, columns)
  }

  /// Writes one row whose columns after the first are of one type.
  public mutating func append<First: SQLValue, Rest: SQLValue>(_ first: First, followedBy rest: [Rest]) throws {
    let start = begin()
    var columns: Int16 = 0
    try append(first, as: &columns, of: start)
    for value in rest { try append(value, as: &columns, of: start) }
    try end(start, columns)
  }

  /// - Returns: where the row is in `bytes`.
  private mutating func begin() -> Int {
    bytes.appendInteger(Int16(0))
    return bytes.count - 2
  }

  private mutating func append<Value: SQLValue>(_ value: Value, as columns: inout Int16, of start: Int) throws {
    columns += 1
    if bytes.appendField(value) == .unrepresentable {
      bytes.removeSubrange(start...)
      throw PostgresError(.invalidParameter, "column \(columns) of row \(count + 1) cannot be encoded for PostgreSQL")
    }
  }

  private mutating func end(_ start: Int, _ columns: Int16) throws {
    Swift.withUnsafeBytes(of: columns.bigEndian) { bytes.replaceSubrange(start..<start + 2, with: $0) }
    count += 1
    if bytes.count > 1 << 16 { try flush() }
  }

  mutating func finish() throws {
    bytes.appendInteger(Int16(-1))
    try flush()
  }

  private mutating func flush() throws {
    try send(bytes)
    bytes.removeAll(keepingCapacity: true)
  }
}

extension ScriptConnection {
  /// Inserts rows into a table with COPY.
  ///
  /// - Parameters:
  ///   - table: its name, exactly as in the catalog.
  ///   - columns: their names, exactly as in the catalog, in the order of the values.
  ///   - write: writes the rows. If it throws, no row is inserted.
  /// - Returns: the number of rows.
  @discardableResult
  public func copy(
    into table: String, columns: [String], _ write: (inout CopyWriter) throws -> Void
  ) throws -> Int {
    let names = columns.map(\.asIdentifier).joined(separator: ", ")
    try begin(copy: "COPY \(table.asIdentifier) (\(names)) FROM STDIN (FORMAT binary)")
    do {
      var writer = CopyWriter { bytes in try self.put(bytes) }
      try write(&writer)
      try writer.finish()
      try end(copyBecause: nil)
      return writer.count
    } catch {
      try? end(copyBecause: "the rows were not all sent")
      throw error
    }
  }
}
