import Foundation

/// A list's claims about its copy.
struct CopyStatus: Sendable, Hashable {
  let stamp: Stamp
  let provedAt: Date
  /// The number of items.
  let count: Int
  /// Whether the service has further items after those of the copy.
  let hasMore: Bool

  init(_ copy: StoredCopy) {
    stamp = copy.stamp
    provedAt = copy.provedAt
    count = copy.entries.count
    hasMore = copy.nextCursor != nil
  }
}
