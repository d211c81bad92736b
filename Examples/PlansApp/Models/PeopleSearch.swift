import Foundation
import MusterKit
import Observation

/// Finds users by their names. It needs a network; asking one of them to be a friend does not.
@MainActor @Observable
final class PeopleSearch {
  /// Decides about the button of a row.
  enum Relation: Hashable {
    case none, friend
    /// The user has asked, sent or not.
    case asked
    /// Nil if the phone does not have the request yet.
    case asksYou(FriendRequest.ID?)
  }

  var query = ""
  private(set) var failure: String?
  private var found: [FoundUser]?
  let home: Home

  init(in home: Home) { self.home = home }

  var users: [FoundUser] { found ?? [] }
  var isEmpty: Bool { found?.isEmpty == true }

  /// A view cancels this when the query changes.
  func search(after pause: Duration = .zero) async {
    let query = query.trimmingCharacters(in: .whitespaces)
    guard !query.isEmpty else { return (found, failure) = (nil, nil) }
    failure = await Home.failure {
      try await Task.sleep(for: pause)
      found = try await home.client.users.search(for: query)
    }
  }

  /// The store knows better than the search: it has what the user did since.
  func relation(to user: FoundUser) -> Relation {
    let store = home.store
    if store.friends.items.contains(where: { $0.id == user.id }) { return .friend }
    if store.sentFriendRequests.items.contains(where: { $0.receiver.id == user.id }) { return .asked }
    let request = store.friendRequests.items.first { $0.sender.id == user.id }
    return request != nil || user.friendship == .requesting ? .asksYou(request?.id) : .none
  }
}
