import MusterKit
import Observation

/// Where the user is in the app. While no user is logged in, a place waits for the login.
@MainActor @Observable
final class Router {
  enum Tab: Hashable { case plans, friends, inbox }
  enum Sheet: Identifiable {
    case newEvent, profile
    var id: Self { self }
  }

  var tab = Tab.plans
  var plans: [Event.ID] = []
  var inbox: [Event.ID] = []
  var sheet: Sheet?
  /// Opens when a user is logged in and the phone is unlocked.
  private(set) var waiting: Destination?
  private var unread: InboxItem.ID?

  func open(_ tap: PushTap, in home: Home?) async {
    unread = tap.notification
    await open(tap.destination, in: home)
  }

  func open(_ destination: Destination?, in home: Home?) async {
    waiting = destination ?? waiting
    if let home { await resume(in: home) }
  }

  func resume(in home: Home) async {
    if let id = unread { await home.perform(.markRead([id])) }
    unread = nil
    guard let destination = waiting else { return }
    waiting = nil
    switch destination {
    case .event(let id): (tab, plans) = (.plans, [id])
    case .friends: tab = .friends
    case .inbox: (tab, inbox) = (.inbox, [])
    case .shared(let token):
      // Only the service knows the event, so this needs a network. For a guest of the event, nothing changes.
      guard let event = await home.attempt({ try await home.client.links.join(using: token) }) else { return }
      (tab, plans) = (.plans, [event.id])
      await home.refresh()
    }
  }
}
