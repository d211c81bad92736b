import Postgres
import Testing

@testable import App

/// Ana, Ben and Cleo, who are friends, and their events. The queue is empty.
struct Party: Sendable {
  let ana: Phone
  let ben: Phone
  let cleo: Phone
  /// Ana's event, with both others invited.
  let anas: String
  /// Ben's event with one place. Ana has it, and Cleo waits for it.
  let bens: String
  /// Cleo's event, with both others invited.
  let cleos: String
  /// Two events of Ben's with Ana invited: an archived one and a cancelled one.
  let past: String
  let cancelled: String
  /// Another event of Ben's with Ana invited.
  let another: String

  /// - Parameter number: a suffix that makes the usernames unique.
  static func gather(_ number: Int? = nil, in app: TestApp) async throws -> Party {
    let suffix = number.map(String.init) ?? ""
    let (ana, ben) = (try await app.signUp("ana\(suffix)"), try await app.signUp("ben\(suffix)"))
    let cleo = try await app.signUp("cleo\(suffix)")
    for (one, other) in [(ana, ben), (ben, cleo), (ana, cleo)] {
      try await other.accept(try await one.sendFriendRequest(to: other))
    }
    let anas = try await ana.createEvent("Ana's", inviting: [ben, cleo])["id"].string ?? ""
    let bens = try await ben.createEvent("Ben's", inviting: [ana, cleo], capacity: 1)["id"].string ?? ""
    let cleos = try await cleo.createEvent("Cleo's", inviting: [ana, ben])["id"].string ?? ""
    let past =
      try await ben.createEvent(
        "Past", inviting: [ana], startTime: "2020-01-01T10:00:00Z", endTime: nil)["id"].string ?? ""
    let cancelled = try await ben.createEvent("Cancelled", inviting: [ana])["id"].string ?? ""
    let answered = try await ben.createEvent("Answered", inviting: [ana])["id"].string ?? ""
    try await ana.answer("going", to: bens)
    try await cleo.answer("going", to: bens)
    try await app.database.execute("UPDATE events SET archived_at = now() WHERE id = \(Event.ID(past))")
    try await app.database.execute("UPDATE events SET status = 'cancelled' WHERE id = \(Event.ID(cancelled))")
    try await app.fanOut(for: ana, ben, cleo)
    return Party(
      ana: ana, ben: ben, cleo: cleo, anas: anas, bens: bens, cleos: cleos, past: past, cancelled: cancelled,
      another: answered)
  }
}
