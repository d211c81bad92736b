import MusterKit
import SwiftUI

/// Friends and requests. The search field finds other users.
struct FriendsView: View {
  @State var search: PeopleSearch
  private var home: Home { search.home }

  var body: some View {
    NavigationStack {
      List { if search.query.isEmpty { people } else { results } }
        .navigationTitle("Friends")
        .searchable(text: $search.query, prompt: "Find people")
        .task(id: search.query) { await search.search(after: .milliseconds(300)) }
        .refreshable { await home.refresh() }
    }
  }

  @ViewBuilder private var people: some View {
    if let note = home.note { Text(note).font(.footnote) }
    Section("Requests") {
      ForEach(home.store.friendRequests.items) { request in
        row(request.sender.displayName) {
          button("Accept", .acceptRequest(request.id), request.sender.displayName)
          button("Decline", .declineRequest(request.id), request.sender.displayName)
        }
      }
      ForEach(home.store.sentFriendRequests.items) { request in
        row("\(request.receiver.displayName) has not answered") {
          button("Cancel", .cancelRequest(request.id), request.receiver.displayName)
        }
      }
    }
    Section("Friends") {
      ForEach(home.store.friends.items) { friend in
        Text(friend.user.displayName).swipeActions {
          button("Remove", .endFriendship(with: friend.id), friend.user.displayName).tint(.red)
          button("Block", .block(friend.user), friend.user.displayName)
        }
        .contextMenu { ReportMenu(home: home, subject: .user(friend.id)) }
      }
    }
  }

  @ViewBuilder private var results: some View {
    ForEach(search.users) { user in
      row(user.displayName) {
        switch search.relation(to: user) {
        case .none: button("Ask", .sendRequest(to: user.person), user.displayName)
        case .asksYou(let id?): button("Accept", .acceptRequest(id), user.displayName)
        case .asksYou(nil): Text("Has asked you")
        case .asked: Text("Asked")
        case .friend: Text("Friend")
        }
      }
      .contextMenu { ReportMenu(home: home, subject: .user(user.id)) }
    }
    if search.isEmpty { ContentUnavailableView.search(text: search.query) }
    if let failure = search.failure { Text(failure).foregroundStyle(.secondary) }
  }

  private func row(_ title: String, @ViewBuilder actions: () -> some View) -> some View {
    HStack {
      Text(title)
      Spacer()
      actions().buttonStyle(.borderless)
    }
  }

  /// VoiceOver reads the name with it: a list has many buttons of a kind.
  private func button(_ title: String, _ write: Write, _ name: String) -> some View {
    Button(title) { Task { await home.perform(write) } }.accessibilityLabel("\(title): \(name)")
  }
}
