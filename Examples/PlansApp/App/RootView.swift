import MusterKit
import SwiftUI

/// The login, or the user's screens. Links, and questions that concern the whole app, end here.
struct RootView: View {
  @Bindable var account: Account
  var onLogin: @MainActor () async -> Void = {}
  @Environment(\.scenePhase) private var phase

  var body: some View {
    content
      .onChange(of: phase) { if phase == .active { Task { await account.open() } } }
      .onOpenURL { url in Task { await account.router.open(Destination(url), in: account.home) } }
      .confirmationDialog(
        account.question?.title ?? "", isPresented: $account.question.isSet, titleVisibility: .visible,
        presenting: account.question
      ) { question in
        Button(question.confirmation, role: .destructive) { Task { await account.confirm(question) } }
      } message: { question in
        Text(question.message)
      }
  }

  @ViewBuilder private var content: some View {
    switch account.state {
    case .loggedIn(let home):
      HomeView(account: account, home: home, router: account.router)
        .id(ObjectIdentifier(home))
        // The stream is for an app that the user looks at.
        .onChange(of: phase, initial: true) {
          if phase == .background { home.store.stop() } else { home.store.start() }
        }
        .task { await onLogin() }
    case .loggedOut: SignInView(account: account)
    case .locked: ContentUnavailableView("Please unlock your phone.", systemImage: "lock")
    case .unavailable(let sentence):
      ContentUnavailableView(sentence, systemImage: "externaldrive.badge.exclamationmark")
    }
  }
}

private struct HomeView: View {
  let account: Account
  @Bindable var home: Home
  @Bindable var router: Router

  var body: some View {
    TabView(selection: $router.tab) {
      EventListView(account: account, home: home, router: router)
        .tabItem { Label("Plans", systemImage: "calendar") }.tag(Router.Tab.plans)
      FriendsView(search: PeopleSearch(in: home))
        .tabItem { Label("Friends", systemImage: "person.2") }.tag(Router.Tab.friends)
        .badge(home.store.friendRequests.items.count)
      InboxView(inbox: Inbox(home: home), router: router)
        .tabItem { Label("Inbox", systemImage: "bell") }.tag(Router.Tab.inbox)
        .badge(Inbox(home: home).unread)
    }
    .alert(home.failure ?? "", isPresented: $home.failure.isSet) {}
  }
}
