/// Takes rows out of COPY's binary format, in which they arrive in pieces of any size.
struct CopyReader {
  private static let signature = Array("PGCOPY\n".utf8) + [0xff, 0x0d, 0x0a, 0x00]

  private var bytes: [UInt8] = []
  private var hasBegun = false

  mutating func append(_ piece: UnsafeRawBufferPointer) {
    bytes.append(contentsOf: piece)
  }

  /// Calls `body` with the fields of each complete row. Their bytes are valid only during the call.
  mutating func readRows(_ body: ([UnsafeRawBufferPointer?]) throws -> Void) throws {
    let rest = try bytes.withUnsafeBytes { bytes -> Int in
      var offset = 0
      if !hasBegun {
        guard let end = try header(bytes) else { return 0 }
        (offset, hasBegun) = (end, true)
      }
      while let (fields, end) = try row(bytes, at: offset) {
        try body(fields)
        offset = end
      }
      return offset
    }
    bytes.removeFirst(rest)
  }

  /// - Returns: the offset behind the header; nil if it is not complete.
  private func header(_ bytes: UnsafeRawBufferPointer) throws -> Int? {
    guard bytes.count >= 19 else { return nil }
    guard bytes.starts(with: Self.signature) else { throw CellMismatch.malformed }
    let length = Int(try bytes.integer(at: 15, UInt32.self))
    return bytes.count >= 19 + length ? 19 + length : nil
  }

  /// - Returns: nil if the row is not complete, or at the end of all rows.
  private func row(
    _ bytes: UnsafeRawBufferPointer, at start: Int
  ) throws -> (fields: [UnsafeRawBufferPointer?], end: Int)? {
    guard bytes.count >= start + 2 else { return nil }
    let count = Int(try bytes.integer(at: start, Int16.self))
    guard count >= 0 else { return nil }
    var offset = start + 2
    var fields: [UnsafeRawBufferPointer?] = []
    fields.reserveCapacity(count)
    for _ in 0..<count {
      guard bytes.count >= offset + 4 else { return nil }
      let length = Int(try bytes.integer(at: offset, Int32.self))
      guard bytes.count >= offset + 4 + max(0, length) else { return nil }
      fields.append(try bytes.field(at: &offset))
    }
    return (fields, offset)
  }
}
