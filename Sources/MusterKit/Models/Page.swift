/// A part of a list.
public struct Page<Item> {
  /// At most as many as the request's `limit`.
  public var items: [Item]
  /// For the next page; nil on the last page. Opaque.
  public var nextCursor: String?
  /// The collection's stamp when the first page was read. Nil for lists that are not cache collections, and on a later
  /// page once the list has changed.
  public var timestamp: Stamp?
  /// The number of unread notifications in the whole inbox, where 999 also stands for more; only in pages of the inbox.
  public var unread: Int?
  /// One for each item; only on request.
  public var digests: [String]?

  public init(
    items: [Item], nextCursor: String? = nil, timestamp: Stamp? = nil, unread: Int? = nil, digests: [String]? = nil
  ) {
    self.items = items
    self.nextCursor = nextCursor
    self.timestamp = timestamp
    self.unread = unread
    self.digests = digests
  }
}

extension Page: Sendable where Item: Sendable {}
extension Page: Equatable where Item: Equatable {}
extension Page: Hashable where Item: Hashable {}
extension Page: Decodable where Item: Decodable {}
extension Page: Encodable where Item: Encodable {}

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
