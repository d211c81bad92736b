import MusterKit

/// The user's notifications, newest first.
@MainActor struct Inbox {
  let store: MusterStore

  var items: [InboxItem] { store.notifications.items }

  /// For a badge.
  var unread: Int { items.count { $0.readAt == nil } }

  /// Shows it as read immediately, even without a network.
  func read(_ item: InboxItem) async {
    if item.readAt == nil { _ = try? await store.perform(.markRead([item.id])) }
  }

  /// Marks what the list shows. Notifications that arrive meanwhile stay unread.
  func readAll() async {
    if unread > 0 { _ = try? await store.perform(.markAllRead()) }
  }
}
