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
