import Foundation
import MusterClient
import Observation

/// The user's notifications, newest first.
@MainActor @Observable
final class Inbox {
  private let store: MusterStore

  init(store: MusterStore) { self.store = store }

  var items: [InboxItem] { store.notifications.items }

  /// For a badge.
  var unread: Int { items.count { $0.readAt == nil } }

  /// Shows it as read at once, also without a network.
  func read(_ item: InboxItem) {
    guard item.readAt == nil else { return }
    _ = try? store.perform(.markRead([item.id]))
  }

  /// Marks what the list shows. Notifications that arrive meanwhile stay unread.
  func readAll() {
    guard unread > 0 else { return }
    _ = try? store.perform(.markAllRead())
  }
}
