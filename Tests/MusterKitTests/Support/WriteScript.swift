import Foundation
import MusterKit
import TestSupport
import Testing

/// A script of writes by three new users, and a description of what it has led to. Two runs that carried out each write
/// once have equal outcomes.
struct WriteScript: Sendable {
  /// All kinds of writes, in two scripts: see ``missing``.
  enum Part: CaseIterable {
    case plans
    case hosting
  }

  /// The acts that change something and are not in the scripts: those on accounts and sessions, which end the sessions
  /// of the script, and the twin of accepting a proposal.
  static let missing: Set = [
    "logOut", "endSession", "changePassword", "deleteMe", "linkApple", "linkGoogle", "unlinkApple", "unlinkGoogle",
    "declineProposal",
  ]

  let part: Part
  let ana: TestUser
  let ben: TestUser
  let cleo: TestUser

  /// Registers the users. Their calls go through `transport`.
  init(_ part: Part, at url: URL, through transport: any Transport) async throws {
    self.part = part
    ana = try await .register("ana", at: url, transport: transport)
    ben = try await .register("ben", at: url, transport: transport)
    cleo = try await .register("cleo", at: url, transport: transport)
    guard part == .hosting else { return }
    try await ana.befriend(ben)
    try await ana.befriend(cleo)
  }

  func run() async throws {
    switch part {
    case .plans: try await plan()
    case .hosting: try await host()
    }
  }

  private func plan() async throws {
    // Blocks come first, because they remove notices that are not filed yet.
    try await cleo.client.blocks.block(ben.id)
    try await ben.client.blocks.block(ana.id)
    try await ben.client.blocks.unblock(ana.id)
    // Friends.
    let first = try await ana.client.friends.requests.send(to: ben.id)
    #expect(try await ben.client.friends.requests.accept(first.id).status == .accepted)
    let second = try await ana.client.friends.requests.send(to: cleo.id)
    #expect(try await cleo.client.friends.requests.decline(second.id).status == .declined)
    let third = try await ana.client.friends.requests.send(to: cleo.id)
    try await ana.client.friends.requests.cancel(third.id)
    let fourth = try await cleo.client.friends.requests.send(to: ana.id)
    #expect(try await ana.client.friends.requests.accept(fourth.id).status == .accepted)
    // Events.
    let event = try await ana.client.events.create(.planned("Picnic", capacity: 1, inviting: [ben]))
    let other = try await ana.client.events.create(.planned("Quiz", inviting: [ben]))
    let edited = try await ana.client.events.edit(
      event.id, applying: EventEdit(title: "Lunch", note: .set("Bring bread.")))
    #expect(edited.version == event.version + 1)
    _ = try await ana.client.events.invite([cleo.id], to: event.id)
    #expect(try await ben.client.events.answer(.going, to: event.id).myStatus == .going)
    #expect(try await cleo.client.events.answer(.going, to: event.id).myStatus == .waitlisted)
    try await ana.client.events.withdraw(Guest.ID(ben.id), from: event.id)
    try await ana.client.events.cancel(other.id)
    // The rest.
    _ = try await ana.client.me.edit(ProfileEdit(displayName: "Anita", bio: .set("Hello.")))
    _ = try await ben.client.notifications.setPreferences(NotificationPreferences([.eventUpdated: false]))
    let device = try await ben.client.devices.register(DeviceRegistration(platform: .log, token: ben.username))
    try await ben.client.devices.remove(device.id)
    try await ben.client.friends.end(with: ana.id)
    _ = try await cleo.client.reports.report(user: ben.id, reason: .spam, text: "Advertisements.")
  }

  /// The lists of the three users, without ids, times and usernames.
  func outcome() async throws -> [String] {
    var lines: [String] = []
    for user in [ana, ben, cleo] {
      let client = user.client
      let profile = try await client.me.get()
      let picture = profile.pictureUrl == nil ? "no picture" : "a picture"
      lines.append("profile: \(profile.displayName) \(profile.bio ?? "-") \(picture)")
      lines.append("calendar: \(try await client.me.calendarLink() == nil ? "no link" : "a link")")
      for friend in try await client.friends.list().items { lines.append("friend: \(friend.user.displayName)") }
      for direction in [RequestDirection.incoming, .sent] {
        let requests = try await client.friends.requests.list(direction).items
        for request in requests { lines.append("\(direction): \(request.sender.displayName)") }
      }
      for block in try await client.blocks.list().items { lines.append("block: \(block.user.displayName)") }
      for event in try await client.events.list().items {
        lines.append(
          "event: \(event.title) \(event.version) \(event.status) \(event.myStatus) \(event.counts ?? Counts()) "
            + "\(event.hosts.map(\.displayName)) \(event.myPlusOnes)")
        guard user.id == ana.id else { continue }
        for link in try await client.events.links.list(of: event.id) {
          lines.append("link: \(link.kind) \(link.joined)")
        }
      }
      for device in try await client.devices.list().items { lines.append("device: \(device.platform)") }
      let preferences = try await client.notifications.preferences()
      lines.append("preferences: \(preferences.choices.filter { !$0.value }.keys.map(\.rawValue))")
      let inbox = try await client.notifications.list(limit: 100).items
      lines += inbox.map { "\($0.readAt == nil ? "unread" : "read"): \($0.message)" }.sorted()
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
