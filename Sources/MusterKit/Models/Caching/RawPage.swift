/// A part of a collection, with items as they came.
public struct RawPage: Sendable, Hashable, Codable {
  /// The items of the collection, in its order.
  public var items: [JSONValue]
  /// One for each item; empty for a collection that is a single object.
  public var digests: [String]
  /// For the next page; nil on the last page.
  public var nextCursor: String?
  /// Nil on a later page once the list has changed.
  public var timestamp: Stamp?

  public init(items: [JSONValue], digests: [String] = [], nextCursor: String? = nil, timestamp: Stamp? = nil) {
    self.items = items
    self.digests = digests
    self.nextCursor = nextCursor
    self.timestamp = timestamp
  }
}
