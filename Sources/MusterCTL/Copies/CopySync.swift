import MusterKit

/// Brings the copies of a user's lists up to date with one validation, and the requests that it makes necessary.
struct CopySync {
  let account: Account
  let folder: CopyFolder

  init(_ account: Account) {
    self.account = account
    folder = CopyFolder(account.copies)
  }

  /// The maximum number of further requests for what the service left out of a response.
  private static let maximumRounds = 50

  /// - Returns: a change for each list, and the response with the verdicts.
  func run() async throws -> Reply<[CopyChange]> {
    var copies: [CacheCollection: ListCopy] = [:]
    for collection in CacheCollection.allCases { copies[collection] = folder.copy(of: collection) }
    let claims = CacheCollection.allCases.map { ($0, copies[$0]?.claim ?? Claim(timestamp: nil, items: [:])) }
    let reply = try await account.responses.reply {
      try await account.client.cache.validate(Dictionary(uniqueKeysWithValues: claims), include: .changes)
    }
    var changes: [CopyChange] = []
    for collection in CacheCollection.allCases {
      guard let verdict = reply.value[collection] else { continue }
      let old = copies[collection]
      let new = try await copy(of: collection, after: verdict, of: old ?? ListCopy())
      if verdict.invalidate { try folder.save(new, of: collection) }
      changes.append(CopyChange(collection, from: old, to: new, isStale: verdict.invalidate))
    }
    return Reply(value: changes, json: reply.json)
  }

  private func copy(
    of collection: CacheCollection, after verdict: Verdict, of old: ListCopy
  ) async throws -> ListCopy {
    var verdict = verdict
    var (copy, isComplete) = old.updated(by: verdict)
    var round = 0
    while !isComplete, round < CopySync.maximumRounds {
      round += 1
      guard let next = try await account.client.cache.validate([collection: copy.claim], include: .changes)[collection]
      else { break }
      verdict = next
      (copy, isComplete) = copy.updated(by: verdict)
    }
    var cursor = verdict.nextCursor
    while let next = cursor {
      let page = try await account.client.cache.page(of: collection, cursor: next)
      copy.append(page, of: collection)
      cursor = page.nextCursor
    }
    return copy
  }
}
