import Postgres
import Testing

@testable import App

/// Ana and all users who are related to her, each in one way only.
struct Neighbours: Sendable {
  let app: TestApp
  let ana: Phone
  /// Ana's friend, who hosts `bensEvent`.
  let ben: Phone
  /// Has a pending request from Ana.
  let cleo: Phone
  /// Has sent Ana a request.
  let dev: Phone
  /// Is invited to `anasEvent`, but no longer a friend.
  let emre: Phone
  /// Sent Ana a request that she declined.
  let finn: Phone
  /// Is invited to `bensEvent`, like Ana.
  let gil: Phone
  /// Was invited to Ana's archived event.
  let hugo: Phone
  let anasEvent: String
  let bensEvent: String

  var others: [Phone] { [ben, cleo, dev, emre, finn, gil, hugo] }

  /// - Parameter ana: Ana's username, and the beginning of her display name.
  static func gather(around ana: String = "ana", in app: TestApp) async throws -> Neighbours {
    let ana = try await app.signUp(ana, displayName: "\(ana) Quux")
    var phones: [Phone] = []
    for name in ["ben", "cleo", "dev", "emre", "finn", "gil", "hugo"] { phones.append(try await app.signUp(name)) }
    let (ben, emre, gil, hugo) = (phones[0], phones[3], phones[5], phones[6])
    for (one, other) in [(ana, ben), (ana, emre), (ana, hugo), (ben, gil)] { try await app.befriend(one, other) }
    let anasEvent = try await ana.createEvent("Picnic", inviting: [emre])["id"].string ?? ""
    _ = try await ana.createEvent("Old", inviting: [hugo], startTime: "2020-01-01T10:00:00Z", endTime: nil)
    let archived = try await app.service.change { try await Event.archive(endedBefore: .now(), atMost: 10, in: $0) }
    #expect(archived == 1)
    let bensEvent = try await ben.createEvent("Dinner", inviting: [ana, gil])["id"].string ?? ""
    let former = [emre.userID, hugo.userID]
    try await app.database.execute("DELETE FROM friendships WHERE user_a = ANY(\(former)) OR user_b = ANY(\(former))")
    try await ana.sendFriendRequest(to: phones[1])
    try await phones[2].sendFriendRequest(to: ana)
    try await ana.decline(try await phones[4].sendFriendRequest(to: ana))
    try await app.takeNotifications()
    return Neighbours(
      app: app, ana: ana, ben: ben, cleo: phones[1], dev: phones[2], emre: emre, finn: phones[4], gil: gil, hugo: hugo,
      anasEvent: anasEvent, bensEvent: bensEvent)
  }
}

extension TestApp {
  /// The collections that `action` makes stale, by username, after a worker has fanned out its notices. Users without
  /// stale collections are left out.
  func stale(
    among phones: [Phone], after action: () async throws -> Void
  ) async throws -> [String: Set<App.Collection>] {
    try await fanOut()
    var before: [(Phone, [App.Collection: String])] = []
    for phone in phones { before.append((phone, try await phone.refreshLists())) }
    try await action()
    try await fanOut()
    var stale: [String: Set<App.Collection>] = [:]
    for (phone, stamps) in before {
      let collections = try await phone.stale(stamps)
      if !collections.isEmpty { stale[phone.username] = collections }
    }
    return stale
  }
}
