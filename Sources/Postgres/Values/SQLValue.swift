import Foundation

/// A Swift value that can be a parameter of a statement and a column of a row.
///
/// A type whose raw value conforms needs only a declaration: `extension Status: SQLValue {}`.
public protocol SQLValue: SQLExpression where Expressed == Self {
  /// The type of a parameter, as sent to the server.
  static var sqlType: SQLType { get }
  /// Appends the value in PostgreSQL's binary format.
  func encode(into bytes: inout [UInt8]) -> SQLEncoding
  /// - Throws: any error if the cell has another type. The caller gets a ``PostgresError`` that names the column.
  init(cell: SQLCell) throws
}

/// The outcome of encoding a value.
public enum SQLEncoding: Sendable {
  /// The value's bytes were appended to the buffer.
  case bytes
  /// The value is NULL. Nothing was appended.
  case null
  /// PostgreSQL cannot represent the value: text with U+0000, or a time out of range. The statement is rejected before
  /// it is sent.
  case unrepresentable
}

/// Why a cell cannot become the requested Swift type. A type's `init(cell:)` throws it, and the row adds the column's
/// name.
public enum CellMismatch: Error, Sendable {
  /// The cell is NULL.
  case null
  /// The cell has another type.
  case type
  /// The bytes are not a value of the type, or the Swift type cannot represent the value.
  case malformed
  /// The cell is an array, and one of its elements is NULL.
  case nullElement
  /// The cell is an array with several dimensions.
  case dimensions
}

/// Reads text, JSON, and user-defined types whose values are text, such as enums.
extension String: SQLValue {
  public static var sqlType: SQLType { .text }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    let start = bytes.count
    bytes.append(contentsOf: utf8)
    return bytes[start...].hasZero ? .unrepresentable : .bytes
  }

  public init(cell: SQLCell) throws {
    guard var bytes = cell.bytes else { throw CellMismatch.null }
    switch cell.type {
    case 25, 1043, 1042, 19, 705, 114: break  // text, varchar, char(n), name, unknown, json
    case SQLType.jsonb.oid: bytes = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())  // a version byte comes first
    // User-defined types: the binary format of an enum is its label, and of citext its text. Those of composite types,
    // ranges and others contain control characters.
    case 16384...: guard !bytes.contains(where: Self.isControl) else { throw CellMismatch.type }
    default: throw CellMismatch.type
    }
    self.init(decoding: bytes, as: UTF8.self)
    // Bytes that are not UTF-8 were replaced.
    guard hasBytes(bytes) else { throw CellMismatch.malformed }
  }

  private func hasBytes(_ bytes: UnsafeRawBufferPointer) -> Bool {
    utf8.withContiguousStorageIfAvailable { own in
      guard let start = own.baseAddress, let other = bytes.baseAddress else { return own.count == bytes.count }
      return own.count == bytes.count && memcmp(start, other, bytes.count) == 0
    } ?? utf8.elementsEqual(bytes)
  }

  private static func isControl(_ byte: UInt8) -> Bool {
    byte < 0x20 && ![UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r")].contains(byte)
  }
}

extension Collection<UInt8> {
  /// Whether one of the bytes is zero, which PostgreSQL's text cannot contain.
  var hasZero: Bool {
    withContiguousStorageIfAvailable { bytes in bytes.baseAddress.map { memchr($0, 0, bytes.count) != nil } ?? false }
      ?? contains(0)
  }
}

extension Bool: SQLValue {
  public static var sqlType: SQLType { .bool }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    bytes.append(self ? 1 : 0)
    return .bytes
  }

  public init(cell: SQLCell) throws {
    self = try cell.bytes(of: .bool).integer(UInt8.self) != 0
  }
}

extension FixedWidthInteger where Self: SQLValue {
  @inlinable
  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    bytes.appendInteger(self)
    return .bytes
  }

  @inlinable
  public init(cell: SQLCell) throws {
    guard let bytes = cell.bytes else { throw CellMismatch.null }
    let wide =
      switch cell.type {
      case 20: try bytes.integer(Int64.self)  // as in `SQLType`
      case 21: Int64(try bytes.integer(Int16.self))
      case 23: Int64(try bytes.integer(Int32.self))
      default: throw CellMismatch.type
      }
    guard let value = Self(exactly: wide) else { throw CellMismatch.malformed }
    self = value
  }
}

extension Int: SQLValue { public static var sqlType: SQLType { .int8 } }

extension Int64: SQLValue { public static var sqlType: SQLType { .int8 } }

extension Int32: SQLValue { public static var sqlType: SQLType { .int4 } }

extension Int16: SQLValue { public static var sqlType: SQLType { .int2 } }

extension Double: SQLValue {
  public static var sqlType: SQLType { .float8 }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    bytes.appendInteger(bitPattern)
    return .bytes
  }

  public init(cell: SQLCell) throws {
    let bytes = try cell.bytes(of: .float8, .float4)
    self =
      cell.type == SQLType.float4.oid
      ? Double(Float(bitPattern: try bytes.integer())) : Double(bitPattern: try bytes.integer())
  }
}

extension Float: SQLValue {
  public static var sqlType: SQLType { .float4 }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    bytes.appendInteger(bitPattern)
    return .bytes
  }

  public init(cell: SQLCell) throws {
    self = Float(bitPattern: try cell.bytes(of: .float4).integer())
  }
}

extension UUID: SQLValue {
  public static var sqlType: SQLType { .uuid }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    withUnsafeBytes(of: uuid) { bytes.append(contentsOf: $0) }
    return .bytes
  }

  public init(cell: SQLCell) throws {
    let bytes = try cell.bytes(of: .uuid)
    guard bytes.count == 16 else { throw CellMismatch.malformed }
    self.init(uuid: bytes.loadUnaligned(as: uuid_t.self))
  }
}

extension Data: SQLValue {
  public static var sqlType: SQLType { .bytea }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    bytes.append(contentsOf: self)
    return .bytes
  }

  public init(cell: SQLCell) throws {
    self.init(try cell.bytes(of: .bytea))
  }
}

extension Optional: SQLExpression, SQLValue where Wrapped: SQLValue {
  @inlinable public static var sqlType: SQLType { Wrapped.sqlType }

  @inlinable
  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    guard let self else { return .null }
    return self.encode(into: &bytes)
  }

  @inlinable
  public init(cell: SQLCell) throws {
    self = cell.bytes == nil ? nil : try Wrapped(cell: cell)
  }
}

extension RawRepresentable where Self: SQLValue, RawValue: SQLValue {
  @inlinable public static var sqlType: SQLType { RawValue.sqlType }

  @inlinable
  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    rawValue.encode(into: &bytes)
  }

  @inlinable
  public init(cell: SQLCell) throws {
    guard let value = Self(rawValue: try RawValue(cell: cell)) else { throw CellMismatch.malformed }
    self = value
  }
}

/// A JSON document as text, stored as `jsonb`.
public struct JSONDocument: SQLValue, Equatable {
  public static var sqlType: SQLType { .jsonb }
  /// When read from the server, it differs from the stored text: `jsonb` keeps neither spaces nor the order of keys.
  public let text: String

  /// - Parameter text: validated by the server, not here.
  public init(_ text: String) {
    self.text = text
  }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    bytes.append(1)
    return text.encode(into: &bytes)
  }

  public init(cell: SQLCell) throws {
    self.init(try String(cell: cell))
  }
}
