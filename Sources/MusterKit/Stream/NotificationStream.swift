import Foundation

/// Notifications as they enter the inbox, and which collections change.
///
/// Connects when it is iterated, and again after each lost connection, without missing a notification. Ends when its
/// task is cancelled. Throws ``MusterError/loggedOut`` when the session ends, and no other error.
///
///     for try await event in client.notifications.stream() {
///       if case .notification(let item) = event { show(item.message) }
///     }
public struct NotificationStream: AsyncSequence, Sendable {
  public typealias Element = StreamEvent

  let caller: APICaller
  let lastEventID: String?
  /// Called when a connection is lost, before the next one is tried.
  var onLoss: (@Sendable () -> Void)?

  public func makeAsyncIterator() -> Iterator { Iterator(caller: caller, lastEventID: lastEventID, onLoss: onLoss) }
}
