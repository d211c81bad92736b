/// A JSON document as a tree.
///
/// Muster has its own parser, because general decoders accept what must be refused: nesting deeper than 32 levels
/// (Foundation's overflows the stack at about 160), duplicate keys (readers disagree which one counts), and U+0000
/// (PostgreSQL cannot store it in text).
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

  /// The kind of value, for an error message.
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
