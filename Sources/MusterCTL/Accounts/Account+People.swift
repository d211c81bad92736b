import ArgumentParser
import Foundation
import MusterKit

/// Finds the users that a command names.
extension Account {
  /// The service's maximum: friends with a similar name come before a user with the very name.
  private static let searchLimit = 100

  /// A user by username, in any case, with or without an @; or by id.
  func user(named name: String) async throws -> Person {
    if let id = User.ID(name) {
      let profile = try await client.users.get(id)
      return Person(
        id: id, username: profile.username, displayName: profile.displayName, pictureUrl: profile.pictureUrl)
    }
    let found = try await client.users.search(for: name.withoutAt, limit: Account.searchLimit)
    if let person = found.first(where: { $0.isNamed(name) }) { return person }
    let similar = found.prefix(3).map(\.username)
    let advice = similar.isEmpty ? "" : " Did you mean \(similar.joined(separator: " or "))?"
    throw Failure.refused("There is no user \"\(name)\".\(advice)")
  }

  /// Friends by their usernames or ids.
  func friends(named names: [String]) async throws -> [Person] {
    guard !names.isEmpty else { return [] }
    let friends = try await responses.pages { try await client.friends.list(limit: $0, cursor: $1) }.value.map(\.user)
    return try names.map { name in
      guard let friend = friends.first(where: { $0.isNamed(name) }) else {
        throw Failure.refused("You have no friend \"\(name)\". `musterctl friends` lists your friends.")
      }
      return friend
    }
  }

  /// A guest of an event, with or without an account.
  func guest(named name: String, of event: Event) async throws -> Guest {
    let guests = try await responses.pages {
      try await client.events.guests(of: event.id, limit: $0, cursor: $1)
    }.value
    let found = GuestMatch.candidates(for: name, in: guests)
    switch found.count {
    case 0: throw Failure.refused("“\(event.title)” has no guest \"\(name)\". `musterctl events guests` lists them.")
    case 1: return found[0]
    default:
      let ids = ShortID(guests.map(\.id))
      let list = found.prefix(10).map { "\n  \(ids.of($0.id))  \($0.fullName)" }.joined()
      throw Failure.refused("\"\(name)\" matches several guests. Use the id:\(list)")
    }
  }

  /// The pending request from or to a user, by username or id, in the first list that has it.
  func request(_ directions: [RequestDirection], named name: String) async throws -> FriendRequest {
    for direction in directions {
      let requests = try await responses.pages {
        try await client.friends.requests.list(direction, limit: $0, cursor: $1)
      }.value
      let found = requests.first {
        (direction == .sent ? $0.receiver : $0.sender).isNamed(name) || $0.id == FriendRequest.ID(name)
      }
      if let found { return found }
    }
    throw Failure.refused("There is no friend request \(directions == [.sent] ? "to" : "from") \"\(name)\".")
  }
}

extension Person {
  func isNamed(_ name: String) -> Bool {
    username.lowercased() == name.withoutAt.lowercased() || id == User.ID(name)
  }

  /// Such as `Ana Duarte (ana)`.
  var fullName: String { displayName == username ? username.safeLine : "\(displayName) (\(username))".safeLine }
}

extension String {
  fileprivate var withoutAt: String { hasPrefix("@") ? String(dropFirst()) : self }
}

struct UserArgument: ParsableArguments {
  @Argument(help: ArgumentHelp("The user's username.", valueName: "username"))
  var name: String
}

struct GuestArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The guest's username; for a visitor, the name, the id, or the beginning or end of the id.", valueName: "guest"))
  var name: String
}

/// Finds a guest by username, by the name of a visitor, by the id, or by the beginning or end of the id.
enum GuestMatch {
  /// The minimum length of a partial id.
  private static let minimumIDPart = 4

  /// The guests whom a text can mean. A whole id takes precedence, because visitors choose their names. Then comes a
  /// username: it is what a user owns.
  static func candidates(for text: String, in guests: [Guest]) -> [Guest] {
    if let guest = guests.first(where: { $0.id == Guest.ID(text) }) { return [guest] }
    let users = guests.filter { $0.user?.isNamed(text) == true }
    guard users.isEmpty else { return users }
    let word = text.lowercased()
    return guests.filter { guest in
      let id = guest.id.description
      let isPart = word.count >= minimumIDPart && (id.hasPrefix(word) || id.hasSuffix(word))
      return isPart || (guest.user == nil && guest.name.lowercased() == word)
    }
  }
}

extension Guest {
  /// Such as `Ben Okafor (ben)`, or `Zoe (visitor)`.
  var fullName: String { user?.fullName ?? "\(name) (visitor)".safeLine }
}
