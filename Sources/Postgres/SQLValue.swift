import Foundation

/// A PostgreSQL type: its object identifier and that of its array type, as in `pg_type`.
public struct SQLType: Sendable, Equatable {
  /// `pg_type.oid`.
  public let oid: UInt32
  /// `pg_type.typarray`.
  public let arrayOID: UInt32

  /// A type that PostgreSQL has built in: those of extensions have other oids in each database.
  public init(oid: UInt32, arrayOID: UInt32) {
    self.oid = oid
    self.arrayOID = arrayOID
  }

  /// `bool`: a `Bool`.
  public static let bool = SQLType(oid: 16, arrayOID: 1000)
  /// `bytea`: a `Data`.
  public static let bytea = SQLType(oid: 17, arrayOID: 1001)
  /// `int2`: an `Int16`; any integer reads it.
  public static let int2 = SQLType(oid: 21, arrayOID: 1005)
  /// `int4`: an `Int32`; any integer reads it.
  public static let int4 = SQLType(oid: 23, arrayOID: 1007)
  /// `int8`: an `Int`; any integer reads it.
  public static let int8 = SQLType(oid: 20, arrayOID: 1016)
  /// `text`: a `String`.
  public static let text = SQLType(oid: 25, arrayOID: 1009)
  /// `float4`: a `Float`.
  public static let float4 = SQLType(oid: 700, arrayOID: 1021)
  /// `float8`: a `Double`, which also reads `float4`.
  public static let float8 = SQLType(oid: 701, arrayOID: 1022)
  /// `date`: a ``Day``.
  public static let date = SQLType(oid: 1082, arrayOID: 1182)
  /// `timestamptz`: a ``Timestamp``.
  public static let timestamptz = SQLType(oid: 1184, arrayOID: 1185)
  /// `uuid`: a `UUID`.
  public static let uuid = SQLType(oid: 2950, arrayOID: 2951)
  /// `jsonb`: a ``JSONDocument``.
  public static let jsonb = SQLType(oid: 3802, arrayOID: 3807)
}

/// What a value did with the buffer.
public enum SQLEncoding: Sendable {
  /// Its bytes are in it.
  case bytes
  /// Nothing: it is SQL's NULL.
  case null
  /// It has no form in PostgreSQL: text with U+0000, a time out of range. The statement is refused before it is sent.
  case unrepresentable
}

/// One column of one row in PostgreSQL's binary format. Valid only while it is being decoded.
public struct SQLCell {
  /// The column's type, as in `pg_type.oid`.
  public let type: UInt32
  /// nil is NULL.
  public let bytes: UnsafeRawBufferPointer?
}

/// Why a cell cannot become the Swift type asked for. The row adds the column's name.
enum CellMismatch: Error {
  case null, type, malformed
  /// Of arrays: an element is NULL, or there are several dimensions.
  case nullElement, dimensions
}

/// A Swift value that can be a parameter of a statement and a column of a row.
///
/// A type with a raw value of such a type conforms by declaration alone: `extension Status: SQLValue {}`.
public protocol SQLValue: Sendable {
  /// What the server is told that a parameter is.
  static var sqlType: SQLType { get }
  /// Appends the value in PostgreSQL's binary format.
  func encode(into bytes: inout [UInt8]) -> SQLEncoding
  /// - Throws: any error when the cell is of another type; the caller gets a ``PostgresError`` naming the column.
  init(cell: SQLCell) throws
}

extension SQLCell {
  /// Whether it is an array: of a built-in type that some Swift type reads, or perhaps of one made in the database.
  var isArray: Bool {
    switch type {
    case 1000, 1001, 1005, 1007, 1016, 1021, 1022, 1182, 1185, 2951, 3807: true  // as in `SQLType`
    case 1009, 1015, 1014, 1003, 199: true  // of text, varchar, char(n), name, json
    default: type >= 16384
    }
  }

  /// The bytes when the cell is not NULL and of one of these types.
  func bytes(of one: SQLType, _ other: SQLType? = nil, _ third: SQLType? = nil) throws -> UnsafeRawBufferPointer {
    guard let bytes else { throw CellMismatch.null }
    guard type == one.oid || type == other?.oid || type == third?.oid else { throw CellMismatch.type }
    return bytes
  }
}

extension UnsafeRawBufferPointer {
  func integer<T: FixedWidthInteger>(at offset: Int = 0, _: T.Type = T.self) throws -> T {
    guard offset >= 0, count >= offset + MemoryLayout<T>.size else { throw CellMismatch.malformed }
    return T(bigEndian: loadUnaligned(fromByteOffset: offset, as: T.self))
  }
}

extension [UInt8] {
  mutating func appendInteger(_ value: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
  }
}

extension String: SQLValue {
  public static var sqlType: SQLType { .text }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    let start = bytes.count
    bytes.append(contentsOf: utf8)
    return bytes[start...].contains(0) ? .unrepresentable : .bytes
  }

  public init(cell: SQLCell) throws {
    guard var bytes = cell.bytes else { throw CellMismatch.null }
    switch cell.type {
    case 25, 1043, 1042, 19, 705, 114: break  // text, varchar, char(n), name, unknown, json
    case SQLType.jsonb.oid: bytes = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())  // a version byte comes first
    case 16384...: break  // types made in the database: an enum's binary form is its label
    default: throw CellMismatch.type
    }
    self = String(decoding: bytes, as: UTF8.self)
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
  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    bytes.appendInteger(self)
    return .bytes
  }

  public init(cell: SQLCell) throws {
    let bytes = try cell.bytes(of: .int8, .int4, .int2)
    let wide =
      switch cell.type {
      case SQLType.int2.oid: Int64(try bytes.integer(Int16.self))
      case SQLType.int4.oid: Int64(try bytes.integer(Int32.self))
      default: try bytes.integer(Int64.self)
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

/// A JSON document, stored as `jsonb` and carried as its text.
public struct JSONDocument: SQLValue, Equatable {
  public static var sqlType: SQLType { .jsonb }
  /// As the server writes it: `jsonb` keeps neither spaces nor the order of keys.
  public let text: String

  /// - Parameter text: checked by the server, not here.
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

extension Optional: SQLValue where Wrapped: SQLValue {
  public static var sqlType: SQLType { Wrapped.sqlType }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    guard let self else { return .null }
    return self.encode(into: &bytes)
  }

  public init(cell: SQLCell) throws {
    self = cell.bytes == nil ? nil : try Wrapped(cell: cell)
  }
}

/// A one-dimensional array, which reads whatever its elements read: `[Int]` is `int2[]`, `int4[]` or `int8[]`, and
/// `[Int?]` the same with NULLs among them.
extension Array: SQLValue where Element: SQLValue {
  public static var sqlType: SQLType {
    SQLType(oid: Element.sqlType.arrayOID, arrayOID: Element.sqlType.arrayOID)
  }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    bytes.appendInteger(Int32(isEmpty ? 0 : 1))  // dimensions
    bytes.appendInteger(Int32(1))  // may hold NULLs
    bytes.appendInteger(Element.sqlType.oid)
    if isEmpty { return .bytes }
    bytes.appendInteger(Int32(count))
    bytes.appendInteger(Int32(1))  // the first index
    for element in self {
      let place = bytes.count
      bytes.appendInteger(Int32(-1))
      switch element.encode(into: &bytes) {
      case .bytes: break
      case .null: continue
      case .unrepresentable: return .unrepresentable
      }
      let length = Int32(bytes.count - place - 4)
      Swift.withUnsafeBytes(of: length.bigEndian) { bytes.replaceSubrange(place..<place + 4, with: $0) }
    }
    return .bytes
  }

  public init(cell: SQLCell) throws {
    guard let bytes = cell.bytes else { throw CellMismatch.null }
    guard cell.type == Self.sqlType.oid || cell.isArray else { throw CellMismatch.type }
    let dimensions = try bytes.integer(Int32.self)
    // A composite value of the database's own begins in the same way, but has the oid of a type here.
    guard (0...1).contains(try bytes.integer(at: 4, Int32.self)) else { throw CellMismatch.type }
    let element = try bytes.integer(at: 8, UInt32.self)
    self = []
    if dimensions == 0 {
      // An array without elements has a type all the same: any element would say whether it is the right one.
      let nothing = UnsafeRawBufferPointer(rebasing: bytes[..<0])
      do { _ = try Element(cell: SQLCell(type: element, bytes: nothing)) } catch CellMismatch.type {
        throw CellMismatch.type
      } catch {}
      return
    }
    guard dimensions == 1 else { throw CellMismatch.dimensions }
    let total = Int(try bytes.integer(at: 12, Int32.self))
    guard total >= 0 else { throw CellMismatch.malformed }
    var offset = 20
    for _ in 0..<total {
      let length = Int(try bytes.integer(at: offset, Int32.self))
      offset += 4
      guard length >= 0 else {
        do { append(try Element(cell: SQLCell(type: element, bytes: nil))) } catch CellMismatch.null {
          throw CellMismatch.nullElement
        }
        continue
      }
      guard offset + length <= bytes.count else { throw CellMismatch.malformed }
      let part = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + length])
      append(try Element(cell: SQLCell(type: element, bytes: part)))
      offset += length
    }
  }
}

extension RawRepresentable where Self: SQLValue, RawValue: SQLValue {
  public static var sqlType: SQLType { RawValue.sqlType }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    rawValue.encode(into: &bytes)
  }

  public init(cell: SQLCell) throws {
    guard let value = Self(rawValue: try RawValue(cell: cell)) else { throw CellMismatch.malformed }
    self = value
  }
}
