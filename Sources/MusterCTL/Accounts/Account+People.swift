import Foundation
import MusterKit

/// Finds the users that a command names.
extension Account {
  /// The service's maximum: friends with a similar name come before a user with the very name.
  private static let searchLimit = 100

  /// A user by username, in any case, with or without an @; or by id.
  func user(named name: String) async throws -> Person {
    if let id = User.ID(name) {
      return try await client.users.get(id).person
    }
    let found = try await client.users.search(for: name.withoutAt, limit: Account.searchLimit).map(\.person)
    if let person = found.first(where: { $0.isNamed(name) }) { return person }
    throw Account.unknown("There is no user \"\(name)\".", similar: Array(found.prefix(3)), otherwise: "")
  }

  /// A user in one of the caller's lists.
  ///
  /// - Parameters:
  ///   - sentence: about a name that the list does not have.
  ///   - advice: if the list has no similar name.
  func person(named name: String, in list: [Person], _ sentence: String, otherwise advice: String) throws -> Person {
    if let person = list.first(where: { $0.isNamed(name) }) { return person }
    throw Account.unknown(sentence, similar: Account.similar(to: name, in: list) { $0 }, otherwise: advice)
  }

  private static func similar<Item>(to name: String, in items: [Item], person: (Item) -> Person) -> [Item] {
    Suggestion.things(for: name.withoutAt, in: items) { [person($0).username, person($0).displayName] }
  }

  private static func unknown(_ sentence: String, similar: [Person], otherwise advice: String) -> Failure {
    let end = similar.isEmpty ? advice : Suggestion.question(similar.map(\.username))
    return .refused(
      end.isEmpty ? sentence : "\(sentence) \(end)",
      candidates: similar.map { .members("id", "username", "displayName", of: $0) })
  }

  /// Friends by their usernames or ids.
  func friends(named names: [String]) async throws -> [Person] {
    guard !names.isEmpty else { return [] }
    let friends = try await responses.pages { try await client.friends.list(limit: $0, cursor: $1) }.value.map(\.user)
    return try names.map { name in
      try person(
        named: name, in: friends, "You have no friend \"\(name)\".",
        otherwise: "`musterctl friends` lists your friends.")
    }
  }

  /// A guest of an event, with or without an account.
  func guest(named name: String, of event: Event) async throws -> Guest {
    let guests = try await responses.pages {
      try await client.events.guests(of: event.id, limit: $0, cursor: $1)
    }.value
    let found = GuestMatch.candidates(for: name, in: guests)
    if let only = found.first, found.count == 1 { return only }
    let similar =
      found.isEmpty ? Suggestion.things(for: name, in: guests) { [$0.user?.username ?? $0.name, $0.name] } : found
    let candidates = similar.map { JSONValue.members("id", "name", "status", "user", of: $0) }
    guard found.isEmpty else {
      let ids = ShortID(guests.map(\.id))
      let list = found.prefix(10).map { "\n  \(ids.of($0.id))  \($0.fullName)" }.joined()
      throw Failure.refused("\"\(name)\" matches several guests. Use the id:\(list)", candidates: candidates)
    }
    let advice =
      similar.isEmpty
      ? "`musterctl events guests` lists them." : Suggestion.question(similar.map { $0.user?.username ?? $0.name })
    throw Failure.refused("“\(event.title)” has no guest \"\(name)\". \(advice)", candidates: candidates)
  }

  /// The pending request from or to a user, by username or id, in the first list that has it.
  func request(_ directions: [RequestDirection], named name: String) async throws -> FriendRequest {
    let isSent = directions == [.sent]
    let other: (FriendRequest) -> Person = { isSent ? $0.receiver : $0.sender }
    var all: [FriendRequest] = []
    for direction in directions {
      let requests = try await responses.pages {
        try await client.friends.requests.list(direction, limit: $0, cursor: $1)
      }.value
      if let found = requests.first(where: { other($0).isNamed(name) || $0.id == FriendRequest.ID(name) }) {
        return found
      }
      all += requests
    }
    let similar = Account.similar(to: name, in: all, person: other)
    let advice =
      similar.isEmpty
      ? "`musterctl requests\(isSent ? " list --sent" : "")` lists them."
      : Suggestion.question(similar.map { other($0).username })
    throw Failure.refused(
      "There is no friend request \(isSent ? "to" : "from") \"\(name)\". \(advice)",
      candidates: similar.map { .members("id", "createdAt", isSent ? "receiver" : "sender", of: $0) })
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
  var withoutAt: String { hasPrefix("@") ? String(dropFirst()) : self }
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
