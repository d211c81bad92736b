import MusterKit

/// The user's notifications, newest first.
@MainActor struct Inbox {
  let home: Home

  var items: [InboxItem] { home.store.notifications.items }
  var unread: Int { items.count { $0.readAt == nil } }

  /// Shows it as read immediately, even without a network, and opens its place. An event opens within the inbox.
  func open(_ item: InboxItem, with router: Router) async {
    if item.readAt == nil { await home.perform(.markRead([item.id])) }
    switch item.destination {
    case .event(let id): router.inbox = [id]
    case .inbox: break
    case .friends, .shared: await router.open(item.destination, in: home)
    }
  }

  /// Marks what the list shows. Notifications that arrive meanwhile stay unread.
  func readAll() async { if unread > 0 { await home.perform(.markAllRead()) } }
}
