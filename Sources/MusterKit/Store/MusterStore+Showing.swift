import Foundation

extension MusterStore {
  /// Takes copies that were read from files or from the service.
  func take(_ result: StoredCopies.Result) {
    guard !isForgotten else { return }
    for collection in result.changed { base.set(collection, from: result.lists) }
    for (collection, status) in result.statuses { statuses[collection] = status }
    for collection in result.changed where result.statuses[collection] == nil { statuses[collection] = nil }
    publish()
  }

  /// Shows the copies with the pending writes, in all lists together.
  func publish() {
    var shown = base
    var pending: Set<CacheCollection> = []
    for record in outbox.unsettled {
      record.write.resolved(outbox.identities).apply(to: &shown, at: record.createdAt)
      pending.formUnion(record.write.collections)
    }
    for collection in CacheCollection.allCases {
      let state = ListState(
        statuses[collection], isProved: invalidations.isProved(collection),
        hasPendingWrites: pending.contains(collection))
      collection.facts.show(self, shown, state)
    }
  }

  /// Records that the copies may be out of date, and shows it.
  func invalidate(_ collections: some Swift.Collection<CacheCollection>) {
    guard !collections.isEmpty else { return }
    invalidations.add(collections)
    publish()
  }
}
