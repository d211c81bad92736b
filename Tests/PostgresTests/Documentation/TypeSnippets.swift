import Foundation
import Postgres

/// The types of the documentation's article about types: see `Snippets`.
enum TypeSnippets {
  // snippet
  struct Email: RawRepresentable, SQLValue {
    let rawValue: String
  }
  // end

  // snippet
  enum Mood: String, SQLEnum {
    case sad, fine, happy
  }
  // end

  // snippet
  struct Place: SQLValue {
    let name: String
    let floor: Int

    static var sqlType: SQLType { .inferred }

    init(cell: SQLCell) throws {
      let fields = try cell.fields(2)
      (name, floor) = (try String(cell: fields[0]), try Int(cell: fields[1]))
    }

    func encode(into bytes: inout [UInt8]) -> SQLEncoding {
      let quoted = name.replacing("\\", with: "\\\\").replacing("\"", with: "\"\"")
      bytes += Array("(\"\(quoted)\",\(floor))".utf8)
      return .bytes
    }
  }
  // end

  // snippet
  struct Host: SQLRecord {
    let name: String
    let since: Timestamp?

    init(fields: inout SQLFields) throws {
      name = try fields.next()
      since = try fields.next()
    }
  }
  // end

  // snippet
  struct ServerPlace: SQLValue {
    let page: UInt32
    let offset: UInt16

    static var sqlType: SQLType { SQLType(oid: 27, arrayOID: 1010) }  // tid

    init(cell: SQLCell) throws {
      guard let bytes = cell.bytes else { throw CellMismatch.null }
      guard cell.type == Self.sqlType.oid else { throw CellMismatch.type }
      guard bytes.count == 6 else { throw CellMismatch.malformed }
      page = UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self))
      offset = UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt16.self))
    }

    func encode(into bytes: inout [UInt8]) -> SQLEncoding {
      withUnsafeBytes(of: page.bigEndian) { bytes += $0 }
      withUnsafeBytes(of: offset.bigEndian) { bytes += $0 }
      return .bytes
    }
  }
  // end
}
