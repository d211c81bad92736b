import Foundation
import Postgres
import TestSupport
import Testing

@testable import MusterKit

/// Writes that are sent again after the service has forgotten their keys, while other devices have gone on.
@Suite struct LateRepeatTests {
  /// Sends a write again, with a key that the service does not know.
  private func again(_ write: Write, by user: TestUser) async throws {
    #expect(!write.needsKey)
    _ = try await write.send(with: user.client, key: .random())
  }

  private func friends() async throws -> (ana: TestUser, ben: TestUser) {
    let shared = try await MusterServer.shared.value
    return (try await TestUser.register("ana", at: shared.url), try await TestUser.register("ben", at: shared.url))
  }

  @Test func `an accepted request makes no friends again, and answers no later request`() async throws {
    let (ana, ben) = try await friends()
    let request = try await ana.client.friends.requests.send(to: ben.id)
    let write = Write.acceptRequest(request.id)
    try await again(write, by: ben)
    try await ben.client.friends.end(with: ana.id)
    try await again(write, by: ben)
    #expect(try await ben.client.friends.list().items.isEmpty)
    try await ana.client.friends.requests.send(to: ben.id)
    try await again(write, by: ben)
    #expect(try await ben.client.friends.list().items.isEmpty)
  }

  @Test func `a declined and a cancelled request leave later ones alone`() async throws {
    let (ana, ben) = try await friends()
    let first = try await ana.client.friends.requests.send(to: ben.id)
    try await again(.declineRequest(first.id), by: ben)
    let second = try await ana.client.friends.requests.send(to: ben.id)
    try await again(.declineRequest(first.id), by: ben)
    #expect(try await ana.client.friends.requests.list(.sent).items.map(\.id) == [second.id])

    let other = try await TestUser.register("cleo", at: try await MusterServer.shared.value.url)
    let third = try await ana.client.friends.requests.send(to: other.id)
    try await again(.cancelRequest(third.id), by: ana)
    let fourth = try await ana.client.friends.requests.send(to: other.id)
    try await again(.cancelRequest(third.id), by: ana)
    #expect(try await ana.client.friends.requests.list(.sent).items.map(\.id) == [fourth.id, second.id])
  }

  @Test func `an answer is given again only if none was given since`() async throws {
    let (ana, ben) = try await friends()
    try await ana.befriend(ben)
    let event = try await ana.client.events.create(.planned("Picnic", inviting: [ben]))
    var record = OutboxRecord(
      id: UUID(), sequence: 1, write: .answer(.going, to: event.id), basis: .answer(.invited, plusOnes: 0),
      key: .random(), createdAt: .now)
    record.attemptedAt = .now.addingTimeInterval(-30 * 3600)
    try await letInvitationsAge(to: event)
    let going = NewerState.answer(.going, plusOnes: 0)
    for _ in 1...2 { #expect(try await record.deliver(with: ben.client) { _ in } == going) }
    try await ben.client.events.answer(.declined, to: event.id)
    record.basis = .answer(.declined, plusOnes: 0)
    await #expect(throws: OutboxRecord.Superseded.self) { try await record.deliver(with: ben.client) { _ in } }
    #expect(try await ben.client.events.get(event.id).myStatus == .declined)
  }

  @Test func `an answer is not given again for an invitation that is newer than the first attempt`() async throws {
    let (ana, ben) = try await friends()
    try await ana.befriend(ben)
    let event = try await ana.client.events.create(.planned("Picnic", inviting: [ben]))
    var record = OutboxRecord(
      id: UUID(), sequence: 1, write: .answer(.going, to: event.id), basis: .answer(.invited, plusOnes: 0),
      key: .random(), createdAt: .now)
    record.attemptedAt = .now.addingTimeInterval(-30 * 3600)
    try await letInvitationsAge(to: event)
    _ = try await record.deliver(with: ben.client) { _ in }
    try await ana.client.events.withdraw(Guest.ID(ben.id), from: event.id)
    _ = try await ana.client.events.invite([ben.id], to: event.id)
    await #expect(throws: OutboxRecord.Superseded.self) { try await record.deliver(with: ben.client) { _ in } }
    #expect(try await ben.client.events.get(event.id).myStatus == .invited)
  }

  /// Moves the invitations to before the first attempts.
  private func letInvitationsAge(to event: MusterKit.Event) async throws {
    let id = event.id.rawValue
    let aged: Int = try await MusterServer.shared.value.value(
      """
      WITH aged AS (
        UPDATE invitations SET invited_at = invited_at - interval '2 days' WHERE event_id = \(id) RETURNING 1
      )
      SELECT count(*) FROM aged
      """)
    #expect(aged == 1)
  }

  @Test func `a cancelled event stays as it is, whatever version the write names`() async throws {
    let (ana, _) = try await friends()
    let event = try await ana.client.events.create(.planned("Picnic"))
    for version in [nil, event.version] {
      try await again(.cancelEvent(event.id, ifVersion: version), by: ana)
      try await again(.cancelEvent(event.id, ifVersion: version), by: ana)
    }
    let cancelled = try await ana.client.events.get(event.id)
    #expect(cancelled.status == .cancelled && cancelled.version == 2)
  }

  @Test func `a report is sent once, also after an operator has closed it`() async throws {
    let (ana, ben) = try await friends()
    let write = Write.report(.user(ben.id), reason: .spam, text: "Advertisements.")
    try await again(write, by: ana)
    try await again(write, by: ana)
    let server = try await MusterServer.shared.value
    let sender = ana.id.rawValue
    let closed: Int = try await server.value(
      """
      WITH closed AS (UPDATE reports SET closed_at = now() WHERE reporter_id = \(sender) RETURNING 1)
      SELECT count(*) FROM closed
      """)
    #expect(closed == 1)
    try await again(write, by: ana)
    let reports: Int = try await server.value("SELECT count(*) FROM reports WHERE reporter_id = \(sender)")
    #expect(reports == 1)
  }

  @Test func `what was marked as read leaves later notifications unread`() async throws {
    let (ana, ben) = try await friends()
    func notifications(_ count: Int) async throws -> Page<InboxItem> {
      try await eventually { try await ben.client.notifications.list().items.count == count }
      return try await ben.client.notifications.list()
    }
    try await ana.client.friends.requests.send(to: ben.id)
    // A request of an account without a proven address notifies no one.
    let request = try #require(try await ben.client.friends.requests.list(.filtered).items.first)
    try await ben.client.friends.requests.accept(request.id)
    try await ana.client.events.create(.planned("Picnic", inviting: [ben]))
    let page = try await notifications(1)
    let writes: [Write] = [
      .markRead(page.items.map(\.id)), .markAllRead(before: page.timestamp, shown: page.items.map(\.id)),
    ]
    for write in writes { try await again(write, by: ben) }
    try await ana.client.events.create(.planned("Quiz", inviting: [ben]))
    _ = try await notifications(2)
    for write in writes { try await again(write, by: ben) }
    let unread = try await ben.client.notifications.list().items.map { $0.readAt == nil }
    #expect(unread == [true, false])
  }
}
