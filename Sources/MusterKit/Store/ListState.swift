import Foundation

/// The claims of a list or an object of the store about itself.
struct ListState: Sendable, Hashable {
  let isLoaded: Bool
  let isUpToDate: Bool
  let upToDateAsOf: Date?
  let hasPendingWrites: Bool
  let hasMore: Bool

  /// - Parameters:
  ///   - status: nil without a copy.
  ///   - isProved: whether a validation that began after the last invalidation has proved the copy.
  init(_ status: CopyStatus?, isProved: Bool, hasPendingWrites: Bool) {
    isLoaded = status != nil
    isUpToDate = isLoaded && isProved && !hasPendingWrites
    upToDateAsOf = status?.provedAt
    self.hasPendingWrites = hasPendingWrites
    hasMore = status?.hasMore ?? false
  }
}
