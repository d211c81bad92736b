/// A JSON document as a tree.
///
/// Read by a parser of our own, because the general decoders do not refuse what must be refused: nesting deeper than 32
/// (Foundation's dies of a full stack at some 160), keys that occur twice (readers disagree which one counts), and
/// U+0000 (PostgreSQL's text cannot hold it).
enum JSON: Sendable {
  case null
  case bool(Bool)
  /// As written.
  case number(String)
  case string(String)
  case array([JSON])
  case object(Object)

  static let maximumDepth = 32

  init(parsing bytes: some Sequence<UInt8>) throws(Malformed) {
    var parser = JSONParser(bytes: Array(bytes))
    self = try parser.document()
  }

  struct Malformed: Error, Equatable {
    let message: String
  }

  /// What it is, for an error message.
  var kind: String {
    switch self {
    case .null: "null"
    case .bool: "a boolean"
    case .number: "a number"
    case .string: "a string"
    case .array: "an array"
    case .object: "an object"
    }
  }
}
