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
  enum Mood: String, SQLValue {
    case sad, fine, happy
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
  struct Tags: SQLValue, Equatable {
    var words: [String]

    static var sqlType: SQLType { .text }

    init(cell: SQLCell) throws {
      words = try String(cell: cell).split(separator: ",").map(String.init)
    }

    func encode(into bytes: inout [UInt8]) -> SQLEncoding {
      words.joined(separator: ",").encode(into: &bytes)
    }
  }
  // end
}
