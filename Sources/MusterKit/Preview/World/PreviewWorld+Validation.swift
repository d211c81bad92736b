import Foundation

extension PreviewWorld {
  /// The maximum number of keys in a verdict.
  private static let maximumKeys = 500

  /// Tells which copies are stale.
  func validation(_ request: PreviewRequest) throws -> TransportResponse {
    var claims: [String: JSONValue] = request.body.isEmpty ? [:] : try request.read()
    if case .object(let inner)? = claims["timestamps"] { claims = inner }
    if claims.isEmpty {
      claims = Dictionary(uniqueKeysWithValues: CacheCollection.allCases.map { ($0.rawValue, .null) })
    }
    let include = request.query["include"]
    var verdicts: [String: Verdict] = [:]
    for (name, claim) in claims {
      verdicts[name] = try verdict(CacheCollection(rawValue: name), claim, include: include)
    }
    return try .json(verdicts)
  }

  private func verdict(_ collection: CacheCollection?, _ claim: JSONValue, include: String?) throws -> Verdict {
    guard let collection, let stamp = stamps[collection] else { return Verdict(invalidate: true) }
    let claimed = claim.string ?? claim["timestamp"]?.string
    if claimed == stamp.rawValue { return Verdict(invalidate: false, timestamp: stamp) }
    var verdict = Verdict(invalidate: true, timestamp: stamp)
    switch include {
    case "items": verdict.updatedItems = try items(of: collection).map(\.json)
    case "items,digests":
      verdict.updatedItems = try items(of: collection).map(\.json)
      verdict.digests = try items(of: collection).map(\.digest)
    case "changes":
      var held: [String: JSONValue] = [:]
      if case .object(let items)? = claim["items"] { held = items }
      let items = try items(of: collection)
      let shown = items.prefix(Self.maximumKeys)
      verdict.keys = shown.map(\.key)
      verdict.changed = Dictionary(
        uniqueKeysWithValues: shown.filter { held[$0.key]?.string != $0.digest }.map {
          ($0.key, Changed(digest: $0.digest, item: $0.json))
        })
      if items.count > shown.count { verdict.nextCursor = "\(shown.count)@\(stamp.rawValue)" }
    default: break
    }
    return verdict
  }
}
