import Foundation
import Postgres

/// The small cast of `Seeds/`: the same ids every time, dates relative to today. Planting it again moves its events to
/// their days, brings back what was deleted, and changes nothing else that its users did.
public struct DemoSeed: Sendable {
  /// All of the cast log in with it.
  public static let password = "plans-with-friends"
  /// Who the demo is seen as.
  public static let login = "ana"

  let people: [PersonSeed]
  let friends: FriendsSeed
  let events: [EventSeed]

  struct PersonSeed: Decodable {
    let id: UUID
    let username: String
    let displayName: String
    let bio: String?

    var user: User.ID { User.ID(rawValue: id) }
    var email: String { username + "@demo.example" }
  }

  struct FriendsSeed: Decodable {
    struct Friendship: Decodable {
      let between: [String]
      let days: Int
    }
    struct Request: Decodable {
      let id: UUID
      let from: String
      let to: String
      let days: Int
    }
    let friendships: [Friendship]
    let requests: [Request]
  }

  struct EventSeed: Decodable {
    struct Place: Decodable {
      let name: String
      let latitude: Double?
      let longitude: Double?
    }
    let id: UUID
    let creator: String
    let title: String
    let note: String?
    /// From today, in the event's zone.
    let day: Int
    /// `HH:mm`
    let time: String
    let minutes: Int?
    let timeZone: String
    let location: Place?
    let capacity: Int?
    let status: String?
    let guests: [String: String]
  }

  public init() throws {
    func read<Value: Decodable>(_ name: String, as: Value.Type = Value.self) throws -> Value {
      try JSONDecoder().decode(Value.self, from: Data((Resources.seeds[name] ?? "").utf8))
    }
    people = try read("people.json")
    friends = try read("friends.json")
    events = try read("events.json")
  }

  /// Puts the cast into the database, in one transaction.
  ///
  /// - Parameter resets: deletes what was planted before, with all that its users did since.
  /// - Returns: whose login works.
  /// - Throws: ``AppError`` if another account has a username or an address of the cast.
  @discardableResult
  public func plant(in dependencies: Dependencies, now: Date = Date(), resets: Bool = false) async throws -> Logins {
    let hash = try await dependencies.passwords.hash(Self.password)
    if resets { try await erase(from: dependencies.database) }
    try await dependencies.database.change { change in
      var new: Set<String> = []
      for person in people where try await plant(person, passwordHash: hash, in: change) { new.insert(person.username) }
      try await change.lock(users: people.map(\.user), for: .share)
      // Between two who were there before, it is theirs to end.
      for friendship in friends.friendships where !new.isDisjoint(with: friendship.between) {
        try await plant(friendship, now: now, in: change)
      }
      for request in friends.requests { try await plant(request, now: now, in: change) }
      for event in events { try await plant(event, now: now, in: change) }
      let ids = people.map(\.id)
      for collection in Collection.allCases { change.touch(collection, ofUsersIn: "SELECT unnest(\(ids))") }
      // Others whom the cast has invited.
      change.touch(
        .events, .invitations,
        ofUsersIn: "SELECT user_id FROM invitations WHERE event_id = ANY(\(events.map(\.id)))")
    }
    return try await logins(in: dependencies)
  }
}
