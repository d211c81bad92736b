/// Whether the copy of a collection is out of date.
public struct Verdict: Codable, Sendable, Hashable {
  /// Whether the copy is out of date.
  public var invalidate: Bool
  /// The collection's current stamp. It belongs to the items of this response; nil for a collection that the service
  /// does not know.
  public var timestamp: Stamp?
  /// `malformed-timestamp`, if the claim had a stamp that is not a time.
  public var warning: String?
  /// All items, on request, if they are at most 64 KiB.
  public var updatedItems: [JSONValue]?
  /// One for each of `updatedItems`, on request.
  public var digests: [String]?
  /// The keys of the first 500 items as the list is now, in its order. Only with changes.
  public var keys: [String]?
  /// By key, the items whose digests differ from the claim. Only with changes.
  public var changed: [String: Changed]?
  /// Where the list continues after `keys`; nil if it ends there.
  public var nextCursor: String?
  /// Keys whose items differ but did not fit into the response: ask again for them.
  public var missing: [String]?

  public init(
    invalidate: Bool, timestamp: Stamp? = nil, warning: String? = nil, updatedItems: [JSONValue]? = nil,
    digests: [String]? = nil, keys: [String]? = nil, changed: [String: Changed]? = nil, nextCursor: String? = nil,
    missing: [String]? = nil
  ) {
    self.invalidate = invalidate
    self.timestamp = timestamp
    self.warning = warning
    self.updatedItems = updatedItems
    self.digests = digests
    self.keys = keys
    self.changed = changed
    self.nextCursor = nextCursor
    self.missing = missing
  }
}
