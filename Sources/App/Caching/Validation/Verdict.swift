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
  private enum Warning: String {
    case malformedTimestamp = "malformed-timestamp"
  }

  func write(to json: inout JSONWriter) {
    switch addition {
    case .snapshot(let snapshot): write(snapshot, nil, to: &json)
    case .delta(let delta): write(nil, delta, to: &json)
    case nil: write(nil, nil, to: &json)
    }
  }

  /// Inlined: without an addition, which is the most frequent case, only the first members are left.
  @inline(__always)
  private func write(_ snapshot: Snapshot?, _ delta: Delta?, to json: inout JSONWriter) {
    json.verdict(
      invalidate: !isFresh, timestamp: stamp.map(Stamp.init),
      warning: claim.stamp == .malformed ? Warning.malformedTimestamp : nil,
      updatedItems: snapshot?.items.map(WrittenJSON.init), digests: snapshot?.digests, keys: delta?.keys,
      changed: (delta?.changed).map(WrittenJSON.init), nextCursor: delta.map(\.next?.text), missing: delta?.missing)
  }
}
