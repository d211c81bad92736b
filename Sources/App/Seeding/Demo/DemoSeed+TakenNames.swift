import Foundation
import Postgres

/// Accounts that were registered before the demo got a user of the same name.
extension DemoSeed {
  /// The demo users who are not in the database and whose usernames other accounts have.
  func takenUsernames(in database: Database) async throws -> [String] {
    let rows = try await database.rows(
      """
      SELECT u.username_key AS username FROM users AS u
      WHERE u.username_key = ANY(\(people.map(\.username))) AND u.id <> ALL(\(people.map(\.user)))
      ORDER BY 1
      """)
    let planted = try await database.rows("SELECT id FROM users WHERE id = ANY(\(people.map(\.user)))")
    let known = Set(try planted.map { row -> User.ID in try row["id"] })
    let names = try rows.map { row -> String in try row["username"] }
    return names.filter { name in people.contains { $0.username == name && !known.contains($0.user) } }
  }

  /// The demo without some users and all that names them.
  func without(_ usernames: Set<String>) -> DemoSeed {
    if usernames.isEmpty { return self }
    func isKept(_ name: String?) -> Bool { name.map { !usernames.contains($0) } ?? true }
    let requests = friends.requests.filter { isKept($0.from) && isKept($0.to) }
    let events = events.filter { isKept($0.creator) }.map { event in
      event.without((Array(event.guests.keys) + (event.coHosts ?? [])).filter { !isKept($0) })
    }
    let lostRequests = Set(friends.requests.map(\.id)).subtracting(requests.map(\.id))
    let lostEvents = Set(self.events.map(\.id)).subtracting(events.map(\.id))
    return DemoSeed(
      people: people.filter { isKept($0.username) },
      friends: FriendsSeed(
        friendships: friends.friendships.filter { $0.between.allSatisfy(isKept) }, requests: requests,
        blocks: friends.blocks.filter { isKept($0.blocker) && isKept($0.blocked) }),
      events: events,
      inbox: inbox.filter { item in
        isKept(item.to) && isKept(item.person) && !(item.request.map(lostRequests.contains) ?? false)
          && !(item.event.map(lostEvents.contains) ?? false)
      })
  }
}

extension DemoSeed.EventSeed {
  /// The event without some guests and co-hosts. The guests' places go with them, so that those who wait still wait for
  /// a reason. Without any place left, the event has no limit.
  fileprivate func without(_ names: [String]) -> Self {
    var event = self
    let freed = names.filter { guests[$0] == "going" }.reduce(0) { $0 + 1 + (plusOnes?[$1] ?? 0) }
    event.coHosts = event.coHosts?.filter { !names.contains($0) }
    for name in names {
      event.guests[name] = nil
      event.plusOnes?[name] = nil
    }
    guard let capacity, freed > 0 else { return event }
    event.capacity = capacity > freed ? capacity - freed : nil
    if event.capacity == nil { event.guests = event.guests.mapValues { $0 == "waitlisted" ? "going" : $0 } }
    return event
  }
}
