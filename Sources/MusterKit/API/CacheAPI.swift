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
    let user = try await caller.credentials.current().user
    let body = Dictionary(uniqueKeysWithValues: claims.map { ($0.key.rawValue, $0.value) })
    var call = try APICall.write(.validateCache(user), body, key: nil)
    if let include { call.query = [("include", include.rawValue)] }
    // It changes nothing.
    call.repeats = .always
    let verdicts: [String: Verdict] = try await caller.get(call)
    let known = verdicts.compactMap { name, verdict in CacheCollection(rawValue: name).map { ($0, verdict) } }
    return Dictionary(uniqueKeysWithValues: known)
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
