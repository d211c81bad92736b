import MusterKit
import SwiftUI

/// The login, or the user's lists.
struct RootView: View {
  let account: Account
  /// Runs while a user is logged in.
  var onLogin: @MainActor () async -> Void = {}
  @Environment(\.scenePhase) private var phase

  var body: some View {
    if let store = account.store {
      HomeView(account: account, store: store)
        .id(ObjectIdentifier(store))
        .onChange(of: phase, initial: true) {
          // The stream is for an app that the user looks at.
          if phase == .background { store.stop() } else { store.start() }
        }
        .task { await onLogin() }
    } else {
      LoginView(account: account)
    }
  }
}

private struct HomeView: View {
  let account: Account
  let store: MusterStore

  var body: some View {
    TabView {
      EventListView(account: account, store: store)
        .tabItem { Label("Plans", systemImage: "calendar") }
      InboxView(account: account, store: store)
        .tabItem { Label("Inbox", systemImage: "bell") }
        .badge(Inbox(store: store).unread)
    }
  }
}
