/// The copy of a collection that an app holds, to ask whether it is out of date.
public struct Claim: Sendable, Hashable {
  /// The stamp of the copy; nil for no copy, or a copy without a stamp.
  public var timestamp: Stamp?
  /// The digest of each item by its key, so that the response can leave these items out. Nil asks without digests.
  public var items: [String: String]?

  public init(timestamp: Stamp?, items: [String: String]? = nil) {
    self.timestamp = timestamp
    self.items = items
  }
}

extension Claim: Encodable {
  private enum CodingKeys: CodingKey { case timestamp, items }

  public func encode(to encoder: any Encoder) throws {
    guard let items else {
      var container = encoder.singleValueContainer()
      if let timestamp { try container.encode(timestamp) } else { try container.encodeNil() }
      return
    }
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(timestamp, forKey: .timestamp)
    try container.encode(items, forKey: .items)
  }
}
