import Postgres

/// The result of validating one collection.
struct Verdict {
  let claim: CacheClaim
  /// Nil if the server does not know it.
  let collection: Collection?
  let isFresh: Bool
  /// Nil if the collection is unknown.
  var stamp: Timestamp?
  /// The contents that a verdict on a stale collection adds.
  var addition: Addition?

  enum Addition {
    case snapshot(Snapshot)
    case delta(Delta)
  }

  init(_ claim: CacheClaim, _ stamps: Stamps, now: Timestamp) {
    self.claim = claim
    collection = claim.name.isASCII ? Collection.named[claim.name] : nil
    stamp = collection.flatMap { stamps[$0] }
    // An unknown collection is never fresh.
    isFresh = stamp.map { claim.stamp.isFresh(at: $0, now: now) } ?? false
  }

  /// The collection, if the server knows it and the phone's copy is stale.
  var staleCollection: Collection? { isFresh ? nil : collection }
}

extension Verdict: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("invalidate", !isFresh)
      $0.member("timestamp", stamp.map(Stamp.init))
      if claim.stamp == .malformed { $0.member("warning", "malformed-timestamp") }
      switch addition {
      case .snapshot(let snapshot):
        if let items = snapshot.items { $0.member("updatedItems") { $0.raw(items) } }
        if let digests = snapshot.digests { $0.member("digests", digests) }
      case .delta(let delta):
        $0.member("keys", delta.keys)
        $0.member("changed") { $0.raw(delta.changed) }
        $0.member("nextCursor", delta.next?.text)
        if !delta.missing.isEmpty { $0.member("missing", delta.missing) }
      case nil: break
      }
    }
  }
}
