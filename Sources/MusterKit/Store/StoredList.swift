import Foundation
import Observation

/// A list of the store: the user's copy of a collection, with the writes that are pending.
///
/// `isUpToDate` is true only while it is proved: a validation that began after the last sign of a change has found that
/// the list is what the service has, and no write that may change the list is pending. Signs of a change are the
/// launch, a change that the stream announces, the loss of the stream, a write, and a request that fails. Without a
/// live stream (see ``MusterStore/start()``) there may be no sign: then the list was right at ``upToDateAsOf``.
@MainActor
@Observable
public final class StoredList<Item: Sendable & Hashable> {
  /// In the order of the service, with pending writes shown as if they had happened. An item that this version of the
  /// app cannot decode is left out.
  public private(set) var items: [Item] = []
  /// Whether there is a copy. If not, `items` is empty because nothing was received yet.
  public private(set) var isLoaded = false
  /// Whether the list is proved to be what the service has.
  public private(set) var isUpToDate = false
  /// When the request was sent whose response last proved the copy right; nil without a copy. Also known offline.
  public private(set) var upToDateAsOf: Date?
  /// Whether a write is pending that may change this list.
  public private(set) var hasPendingWrites = false
  /// Whether the service has further items after these: see ``MusterStore/loadMore(of:)``.
  public private(set) var hasMore = false

  func show(_ new: [Item]?, _ state: ListState) {
    let new = new ?? []
    if items != new { items = new }
    if isLoaded != state.isLoaded { isLoaded = state.isLoaded }
    if isUpToDate != state.isUpToDate { isUpToDate = state.isUpToDate }
    if upToDateAsOf != state.upToDateAsOf { upToDateAsOf = state.upToDateAsOf }
    if hasPendingWrites != state.hasPendingWrites { hasPendingWrites = state.hasPendingWrites }
    if hasMore != state.hasMore { hasMore = state.hasMore }
  }
}
