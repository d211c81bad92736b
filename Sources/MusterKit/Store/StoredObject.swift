import Foundation
import Observation

/// An object of the store, with the writes that are pending. Its claims are those of ``StoredList``.
@MainActor
@Observable
public final class StoredObject<Value: Sendable & Hashable> {
  /// Nil if there is no copy.
  public private(set) var value: Value?
  /// Whether the object is proved to be what the service has.
  public private(set) var isUpToDate = false
  /// When the request was sent whose response last proved the copy right; nil without a copy.
  public private(set) var upToDateAsOf: Date?
  /// Whether a write is pending that may change this object.
  public private(set) var hasPendingWrites = false

  func show(_ new: Value?, _ state: ListState) {
    if value != new { value = new }
    if isUpToDate != state.isUpToDate { isUpToDate = state.isUpToDate }
    if upToDateAsOf != state.upToDateAsOf { upToDateAsOf = state.upToDateAsOf }
    if hasPendingWrites != state.hasPendingWrites { hasPendingWrites = state.hasPendingWrites }
  }
}
