import Foundation
import Observation

/// A list of the store: the user's copy of a collection, with the writes that are pending.
///
/// `isUpToDate` is true only while it is proved: a validation that began after the last sign of a change has found that
/// the list is what the service has, and no write that may change the list is pending. Signs of a change are the
/// launch, a change that the stream announces, the loss of the stream or its silence, a write, and a request that
/// fails. Without a live stream (see ``MusterStore/start()``) there may be no sign: then the list was right at
/// ``upToDateAsOf``.
@MainActor
@Observable
public final class StoredList<Item: Sendable & Hashable> {
  /// In the order of the service, with pending writes shown as if they had happened, except in
  /// ``MusterStore/pastEvents``. Without the items in ``undecodable``.
  public var items: [Item] {
    access(keyPath: \.items)
    return shown
  }
  /// Not observed itself: an observed property compares each new value with the old one, item by item.
  @ObservationIgnored private var shown: [Item] = []
  /// Whether there is a copy. If not, `items` is empty because nothing was received yet.
  public private(set) var isLoaded = false
  /// Whether the list is proved to be what the service has.
  public private(set) var isUpToDate = false
  /// The items that this version of the app cannot decode, and why. The list is then not up to date.
  public private(set) var undecodable: UndecodableItems?
  /// When the request was sent whose response last proved the copy right; nil without a copy. Also known offline.
  public private(set) var upToDateAsOf: Date?
  /// Whether a write is pending that may change this list.
  public private(set) var hasPendingWrites = false
  /// Whether the service has further items after these: see ``MusterStore/loadMore(of:)``, and for past events
  /// ``MusterStore/earlierEvents``.
  public private(set) var hasMore = false

  func show(_ new: [Item]?, _ state: ListState) {
    let new = new ?? []
    if !new.isKnown(from: shown) { withMutation(keyPath: \.items) { shown = new } }
    if isLoaded != state.isLoaded { isLoaded = state.isLoaded }
    if isUpToDate != state.isUpToDate { isUpToDate = state.isUpToDate }
    if undecodable != state.undecodable { undecodable = state.undecodable }
    if upToDateAsOf != state.upToDateAsOf { upToDateAsOf = state.upToDateAsOf }
    if hasPendingWrites != state.hasPendingWrites { hasPendingWrites = state.hasPendingWrites }
    if hasMore != state.hasMore { hasMore = state.hasMore }
  }
}

extension StoredList<InboxItem> {
  /// The number for a badge: the unread notifications among ``items``, with pending writes.
  public var unreadCount: Int { items.count { $0.readAt == nil } }
}

/// More items are not compared: that would hold up the main actor for longer than to show them again.
private let comparedItems = 500

extension Array where Element: Equatable {
  /// Whether these are the same items as others, as far as a quick look shows. A list that was not touched is known
  /// immediately, however long it is.
  fileprivate func isKnown(from others: [Element]) -> Bool {
    guard count == others.count else { return false }
    if count <= comparedItems { return self == others }
    return withUnsafeBufferPointer { own in
      others.withUnsafeBufferPointer { own.baseAddress == $0.baseAddress }
    }
  }
}

/// An object of the store, with the writes that are pending. Its claims are those of ``StoredList``.
@MainActor
@Observable
public final class StoredObject<Value: Sendable & Hashable> {
  /// Nil if there is no copy, or if this version of the app cannot decode it.
  public private(set) var value: Value?
  /// Whether the object is proved to be what the service has.
  public private(set) var isUpToDate = false
  /// Why this version of the app cannot decode the object. It is then not up to date.
  public private(set) var undecodable: UndecodableItems?
  /// When the request was sent whose response last proved the copy right; nil without a copy.
  public private(set) var upToDateAsOf: Date?
  /// Whether a write is pending that may change this object.
  public private(set) var hasPendingWrites = false

  func show(_ new: Value?, _ state: ListState) {
    if value != new { value = new }
    if isUpToDate != state.isUpToDate { isUpToDate = state.isUpToDate }
    if undecodable != state.undecodable { undecodable = state.undecodable }
    if upToDateAsOf != state.upToDateAsOf { upToDateAsOf = state.upToDateAsOf }
    if hasPendingWrites != state.hasPendingWrites { hasPendingWrites = state.hasPendingWrites }
  }
}

/// Items that the service has sent and that this version of the app cannot decode, because a later version of the
/// service has other values. The store keeps them for a later version of the app.
public struct UndecodableItems: Sendable, Hashable {
  /// The keys of the items in validations: ids, or `me` for an object.
  public let keys: [String]
  /// Why the first one cannot be decoded, for developers.
  public let reason: String
}

/// The claims of a list or an object of the store about itself.
struct ListState: Sendable, Hashable {
  let isLoaded: Bool
  let isUpToDate: Bool
  let undecodable: UndecodableItems?
  let upToDateAsOf: Date?
  let hasPendingWrites: Bool
  let hasMore: Bool

  /// - Parameters:
  ///   - status: nil without a copy.
  ///   - isProved: whether a validation that began after the last invalidation has proved the copy.
  init(_ status: CopyStatus?, isProved: Bool, hasPendingWrites: Bool) {
    isLoaded = status != nil
    undecodable = status?.undecodable
    isUpToDate = isLoaded && isProved && !hasPendingWrites && undecodable == nil
    upToDateAsOf = status?.provedAt
    self.hasPendingWrites = hasPendingWrites
    hasMore = status?.hasMore ?? false
  }
}
