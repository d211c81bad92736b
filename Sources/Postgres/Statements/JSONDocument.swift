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
