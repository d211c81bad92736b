import Foundation
import MusterClient
import TestSupport
import Testing

/// A script of all kinds of writes by three new users, and a description of what it has led to. Two runs that carried
/// out each write once have equal outcomes.
struct WriteScript: Sendable {
  let ana: TestUser
  let ben: TestUser
  let cleo: TestUser

  /// Registers the users. Their calls go through `transport`.
  init(at url: URL, through transport: any Transport) async throws {
    ana = try await .register("ana", at: url, transport: transport)
    ben = try await .register("ben", at: url, transport: transport)
    cleo = try await .register("cleo", at: url, transport: transport)
  }

  /// - Parameter before: called before each write with the user who makes it.
  func run(before: @Sendable (TestUser) throws -> Void = { _ in }) async throws {
    func next(_ user: TestUser) throws -> MusterClient {
      try before(user)
      return user.client
    }
    // Friends.
    let first = try await next(ana).friends.requests.send(to: ben.id)
    #expect(try await next(ben).friends.requests.accept(first.id).status == .accepted)
    let second = try await next(ana).friends.requests.send(to: cleo.id)
    #expect(try await next(cleo).friends.requests.decline(second.id).status == .declined)
    let third = try await next(ana).friends.requests.send(to: cleo.id)
    try await next(ana).friends.requests.cancel(third.id)
    let fourth = try await next(cleo).friends.requests.send(to: ana.id)
    #expect(try await next(ana).friends.requests.accept(fourth.id).status == .accepted)
    // Events.
    let event = try await next(ana).events.create(.planned("Picnic", capacity: 1, inviting: [ben]))
    let other = try await next(ana).events.create(.planned("Quiz", inviting: [ben]))
    let edited = try await next(ana).events.edit(event.id, EventEdit(title: "Lunch", note: .set("Bring bread.")))
    #expect(edited.version == event.version + 1)
    _ = try await next(ana).events.invite([cleo.id], to: event.id)
    #expect(try await next(ben).events.answer(event.id, .going).myStatus == .going)
    #expect(try await next(cleo).events.answer(event.id, .going).myStatus == .waitlisted)
    try await next(ana).events.withdraw(ben.id, from: event.id)
    try await next(ana).events.cancel(other.id)
    // The rest.
    _ = try await next(ana).me.edit(ProfileEdit(displayName: "Anita", bio: .set("Hello.")))
    _ = try await next(ben).notifications.setPreferences(NotificationPreferences([.eventUpdated: false]))
    let device = try await next(ben).devices.register(DeviceRegistration(platform: .log, token: ben.username))
    try await next(ben).devices.remove(device.id)
    _ = try await next(cleo).reports.report(user: ben.id, reason: .spam, text: "Advertisements.")
    try await next(cleo).blocks.block(ben.id)
    try await next(ben).blocks.block(ana.id)
    try await next(ben).blocks.unblock(ana.id)
  }

  /// What the three users see, without ids, times and usernames.
  func outcome() async throws -> [String] {
    var lines: [String] = []
    for user in [ana, ben, cleo] {
      let client = user.client
      let profile = try await client.me.get()
      lines.append("profile: \(profile.displayName) \(profile.bio ?? "-")")
      for friend in try await client.friends.list().items { lines.append("friend: \(friend.user.displayName)") }
      for direction in [RequestDirection.incoming, .sent] {
        let requests = try await client.friends.requests.list(direction).items
        for request in requests { lines.append("\(direction): \(request.sender.displayName)") }
      }
      for block in try await client.blocks.list().items { lines.append("block: \(block.user.displayName)") }
      for event in try await client.events.list().items {
        lines.append(
          "event: \(event.title) \(event.version) \(event.status) \(event.myStatus) \(event.counts ?? Counts())")
      }
      for device in try await client.devices.list().items { lines.append("device: \(device.platform)") }
      let preferences = try await client.notifications.preferences()
      lines.append("preferences: \(preferences.choices.filter { !$0.value }.keys.map(\.rawValue))")
      lines += try await client.notifications.list().items.map { "notification: \($0.message)" }.sorted()
    }
    return lines
  }

  /// The outcome once all notices have reached the inboxes.
  func outcome(equals expected: [String]?, _ comment: Comment) async throws -> [String] {
    var outcome: [String] = []
    do {
      try await eventually {
        outcome = try await self.outcome()
        // Notices of the last writes are filed within a moment. Twice the same is good enough for a first run.
        guard let expected else {
          try await Task.sleep(for: .milliseconds(500))
          return try await self.outcome() == outcome
        }
        return outcome == expected
      }
    } catch let error as Unexpected {
      let difference = outcome.difference(from: expected ?? [])
      Issue.record("\(comment): \(error): \(difference)")
    }
    return outcome
  }
}
