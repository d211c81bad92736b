/// Which copies of collections are out of date.
public struct CacheAPI: Sendable {
  let caller: APICaller

  /// Asks which copies are out of date, and for what has changed.
  ///
  /// - Parameters:
  ///   - claims: what the app holds. Empty asks for all collections.
  ///   - include: nil for verdicts only.
  /// - Returns: a verdict for each claim.
  public func validate(
    _ claims: [CacheCollection: Claim], include: CacheInclude? = .changes
  ) async throws -> [CacheCollection: Verdict] {
    try await validate(claims, past: nil, include: include).collections
  }

  /// The same, with a verdict on the past events.
  ///
  /// - Parameter past: has the digests of the copy; nil does not ask for past events.
  func validate(
    _ claims: [CacheCollection: Claim], past: Claim?, include: CacheInclude?
  ) async throws -> (collections: [CacheCollection: Verdict], past: Verdict?) {
    let user = try await caller.credentials.current().user
    var body = Dictionary(uniqueKeysWithValues: claims.map { ($0.key.rawValue, $0.value) })
    body[PastUpdate.list] = past
    var call = try APICall.write(.validateCache(user), body, key: nil)
    if let include { call.query = [("include", include.rawValue)] }
    // It changes nothing.
    call.repeats = .always
    let verdicts: [String: Verdict] = try await caller.get(call)
    let known = verdicts.compactMap { name, verdict in CacheCollection(rawValue: name).map { ($0, verdict) } }
    return (Dictionary(uniqueKeysWithValues: known), verdicts[PastUpdate.list])
  }

  /// A part of a collection, with the digest of each item.
  ///
  /// - Parameter cursor: the `nextCursor` of the page or verdict before.
  public func page(of collection: CacheCollection, cursor: String? = nil, limit: Int = 100) async throws -> RawPage {
    let facts = collection.facts
    guard facts.key != nil else {
      let object: JSONValue = try await caller.get(.read(facts.route))
      return RawPage(items: [object], timestamp: object["timestamp"]?.string.map(Stamp.init(rawValue:)))
    }
    let query = facts.query + [("include", "digests")]
    let page: Page<JSONValue> = try await caller.get(.page(facts.route, query, limit: limit, cursor: cursor))
    return RawPage(
      items: page.items, digests: page.digests ?? [], nextCursor: page.nextCursor, timestamp: page.timestamp)
  }
}

/// The copy of a collection that an app holds, to ask whether it is out of date.
public struct Claim: Sendable, Hashable {
  /// The stamp of the copy; nil for no copy, or a copy without a stamp.
  public var timestamp: Stamp?
  /// The digest of each item by its key, so that the response can leave these items out. Nil asks without digests.
  public var items: [String: String]?
  /// The same without keys, for lists of any length: the digests of at most 2,000 items, in the order of the copy. The
  /// verdict then has ``Verdict/parts``.
  public var held: [String]?
  /// The maximum number of items in the parts, up to 2,000; without a number, 500. The verdict has parts then, also
  /// without `held`.
  public var limit: Int?
  /// The `nextCursor` of the parts before, for a claim without a timestamp. The verdict has parts then, also
  /// without `held`.
  public var cursor: String?

  public init(
    timestamp: Stamp?, items: [String: String]? = nil, held: [String]? = nil, limit: Int? = nil, cursor: String? = nil
  ) {
    self.timestamp = timestamp
    self.items = items
    self.held = held
    self.limit = limit
    self.cursor = cursor
  }
}

extension Claim: Encodable {
  private enum CodingKeys: CodingKey { case timestamp, items, held, limit, cursor }

  public func encode(to encoder: any Encoder) throws {
    guard items != nil || held != nil else {
      var container = encoder.singleValueContainer()
      if let timestamp { try container.encode(timestamp) } else { try container.encodeNil() }
      return
    }
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(timestamp, forKey: .timestamp)
    try container.encodeIfPresent(items, forKey: .items)
    try container.encodeIfPresent(held?.joined(), forKey: .held)
    try container.encodeIfPresent(limit, forKey: .limit)
    try container.encodeIfPresent(cursor, forKey: .cursor)
  }
}

/// Whether the copy of a collection is out of date.
public struct Verdict: Codable, Sendable, Hashable {
  /// Whether the copy is out of date.
  public var invalidate: Bool
  /// The collection's current stamp. It belongs to the items of this response; nil for a collection that the service
  /// does not know, and if the list has changed since the cursor of the claim was made.
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
  /// Where the list continues after `keys` or `parts`; nil if it ends there.
  public var nextCursor: String?
  /// Keys whose items differ but did not fit into the response: ask again for them.
  public var missing: [String]?
  /// The list as it is now, from the claim's cursor, in its order: runs of items in ``Claim/held``, and new ones. Only
  /// for claims with `held`.
  public var parts: [ListPart]?

  public init(
    invalidate: Bool, timestamp: Stamp? = nil, warning: String? = nil, updatedItems: [JSONValue]? = nil,
    digests: [String]? = nil, keys: [String]? = nil, changed: [String: Changed]? = nil, nextCursor: String? = nil,
    missing: [String]? = nil, parts: [ListPart]? = nil
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
    self.parts = parts
  }
}
