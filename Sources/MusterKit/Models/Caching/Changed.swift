/// An item that differs from the copy.
public struct Changed: Codable, Sendable, Hashable {
  /// Opaque.
  public var digest: String
  public var item: JSONValue

  public init(digest: String, item: JSONValue) {
    self.digest = digest
    self.item = item
  }
}
