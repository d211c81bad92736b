import Foundation
import Postgres

/// The demo of `Seeds/`: users with pictures, friends, events and an inbox, with fixed ids, and dates relative to
/// today. Planting it again moves the events to their days and times and restores deleted ones. It changes nothing else
/// that the users did.
public struct DemoSeed: Sendable {
  /// The password of all demo users.
  public static let password = "plans-with-friends"
  /// The username of the main demo user.
  public static let login = "ana"

  let people: [PersonSeed]
  let friends: FriendsSeed
  let events: [EventSeed]
  let inbox: [InboxSeed]

  struct PersonSeed: Decodable {
    let id: UUID
    let username: String
    let displayName: String
    let bio: String?

    var user: User.ID { User.ID(rawValue: id) }
    var email: String { username + "@demo.example" }
    /// As notices name the user.
    var person: Person { Person(id: user, username: username, displayName: displayName, pictureURL: nil) }
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
    struct Block: Decodable {
      let blocker: String
      let blocked: String
      let days: Int
    }
    let friendships: [Friendship]
    let requests: [Request]
    let blocks: [Block]
  }

  struct EventSeed: Decodable {
    struct Place: Decodable {
      let name: String
      let latitude: Double?
      let longitude: Double?
    }
    let id: UUID
    let creator: String
    /// Nil for none.
    var coHosts: [String]?
    let title: String
    let note: String?
    /// In days from today, in the event's time zone.
    let day: Int
    /// `HH:mm`
    let time: String
    let minutes: Int?
    /// The day of the invitations, in days from today; nil for two weeks before today, or before an earlier event.
    let invited: Int?
    let timeZone: String
    let location: Place?
    let url: String?
    var capacity: Int?
    let maxPlusOnes: Int?
    /// The last day for answers, in days from today. The time is the event's.
    let answerDay: Int?
    let status: String?
    let links: [LinkSeed]?
    let visitors: [VisitorSeed]?
    /// The number of people whom guests bring; nil if no guest brings any.
    var plusOnes: [String: Int]?
    var guests: [String: String]
  }

  init(people: [PersonSeed], friends: FriendsSeed, events: [EventSeed], inbox: [InboxSeed]) {
    self.people = people
    self.friends = friends
    self.events = events
    self.inbox = inbox
  }

  public init() throws {
    func read<Value: Decodable>(_ name: String, as: Value.Type = Value.self) throws -> Value {
      try JSONDecoder().decode(Value.self, from: Data((Resources.seeds[name] ?? "").utf8))
    }
    people = try read("people.json")
    friends = try read("friends.json")
    events = try read("events.json")
    inbox = try read("inbox.json")
  }

  /// Whether the database has users besides those of the demo.
  public func meetsOthers(in database: Database) async throws -> Bool {
    try await database.value("SELECT EXISTS (SELECT FROM users WHERE id <> ALL(\(people.map(\.id))))") == true
  }

  /// Inserts the demo data in one transaction.
  ///
  /// - Parameter resets: whether to first delete the demo data, with everything that its users did.
  /// - Returns: the users whose login still works.
  ///   A demo user whose username another account has is left out.
  /// - Throws: ``AppError`` if another account has the address of a demo user.
  @discardableResult
  public func plant(in dependencies: Dependencies, now: Date = Date(), resets: Bool = false) async throws -> Logins {
    let hash = try await dependencies.passwords.hash(Self.password)
    if resets { try await erase(from: dependencies.database) }
    let taken = try await takenUsernames(in: dependencies.database)
    let seed = without(Set(taken))
    try await seed.plant(
      passwordHash: hash, linkKey: dependencies.linkTokens.kid, zones: dependencies.zones, now: now,
      in: dependencies.database)
    return try await seed.logins(in: dependencies, leftOut: taken)
  }

  private func plant(
    passwordHash hash: String, linkKey: String, zones: ZoneDatabase, now: Date, in database: Database
  ) async throws {
    try await database.change { change in
      try change.lockAhead(users: people.map(\.user), for: .update)
      var new: Set<String> = []
      for person in people where try await plant(person, passwordHash: hash, in: change) { new.insert(person.username) }
      for person in people where new.contains(person.username) { try await plantPicture(of: person, in: change) }
      // What two existing users have ended since, a friendship or a block, is not restored.
      for block in friends.blocks where !new.isDisjoint(with: [block.blocker, block.blocked]) {
        try plant(block, now: now, in: change)
      }
      for friendship in friends.friendships where !new.isDisjoint(with: friendship.between) {
        try plant(friendship, now: now, in: change)
      }
      for request in friends.requests { try plant(request, now: now, in: change) }
      for event in events { try await plant(event, linkKey: linkKey, zones: zones, now: now, in: change) }
      for (place, item) in inbox.enumerated() where new.contains(item.to) {
        try plant(item, at: place, zones: zones, now: now, in: change)
      }
      let ids = people.map(\.id)
      for collection in Collection.allCases { change.touch(collection, ofUsersIn: "SELECT unnest(\(ids))") }
      // The other guests of demo events.
      change.touch(
        .events, .invitations,
        ofUsersIn: "SELECT user_id FROM invitations WHERE event_id = ANY(\(events.map(\.id)))")
    }
  }
}
