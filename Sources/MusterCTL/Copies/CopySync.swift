import MusterClient

/// Brings the copies of a user's lists up to date with one validation, and the requests that it makes necessary.
struct CopySync {
  let client: MusterClient
  let folder: CopyFolder

  /// What the service left out of a response is asked for again so often at most.
  private static let maximumRounds = 50

  /// - Returns: a change for each list, and the service's verdicts.
  func run() async throws -> (changes: [CopyChange], verdicts: [CacheCollection: Verdict]) {
    var copies: [CacheCollection: ListCopy] = [:]
    for collection in CacheCollection.allCases { copies[collection] = folder.copy(of: collection) }
    let claims = CacheCollection.allCases.map { ($0, copies[$0]?.claim ?? Claim(timestamp: nil, items: [:])) }
    let verdicts = try await client.cache.validate(Dictionary(uniqueKeysWithValues: claims), include: .changes)
    var changes: [CopyChange] = []
    for collection in CacheCollection.allCases {
      guard let verdict = verdicts[collection] else { continue }
      let old = copies[collection]
      let new = try await copy(of: collection, after: verdict, of: old ?? ListCopy())
      if verdict.invalidate { try folder.save(new, of: collection) }
      changes.append(CopyChange(collection, from: old, to: new, isStale: verdict.invalidate))
    }
    return (changes, verdicts)
  }

  private func copy(
    of collection: CacheCollection, after verdict: Verdict, of old: ListCopy
  ) async throws -> ListCopy {
    var verdict = verdict
    var (copy, isComplete) = old.updated(by: verdict)
    var round = 0
    while !isComplete, round < CopySync.maximumRounds {
      round += 1
      guard let next = try await client.cache.validate([collection: copy.claim], include: .changes)[collection]
      else { break }
      verdict = next
      (copy, isComplete) = copy.updated(by: verdict)
    }
    var cursor = verdict.nextCursor
    while let next = cursor {
      let page = try await client.cache.page(of: collection, cursor: next)
      copy.append(page, of: collection)
      cursor = page.nextCursor
    }
    return copy
  }
}
