import Foundation
import Testing

@testable import MusterKit

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

@Suite struct PreviewTransportTests {
  private func client(_ failures: PreviewFailures = .none) async throws -> (MusterClient, PreviewTransport) {
    let transport = try PreviewTransport(folder: try await ExportedDemo.folder, failures: failures)
    let client = MusterClient(
      baseURL: transport.baseURL, tokens: MemoryTokenStore(transport.tokens), transport: transport, retries: .never)
    return (client, transport)
  }

  @Test func `reads return the demo`() async throws {
    let (client, _) = try await client()
    #expect(try await client.me.get().username == "ana")
    #expect(try await client.friends.list().items.count == 5)
    #expect(try await client.friends.requests.list(.incoming).items.map(\.sender.username) == ["goran", "fatima"])
    #expect(try await client.events.list().items.count == 13)
    #expect(try await client.events.past().items.map(\.title).first == "Board games, second attempt")
    #expect(try await client.events.find([ExportedDemo.archived, ExportedDemo.climbing]).map(\.status).count == 2)
    let climbing = try await client.events.get(ExportedDemo.climbing)
    #expect(climbing.participants?.first?.status == .going && climbing.myRole == .creator)
    #expect(try await client.events.guests(of: ExportedDemo.climbing).items.count == 5)
    #expect(try await client.events.calendar(of: ExportedDemo.climbing).hasPrefix("BEGIN:VCALENDAR"))
    let listed = try await client.events.list(includeParticipants: true)
    #expect(listed.timestamp == nil && listed.items.allSatisfy { $0.participants != nil })
    #expect(try await client.users.get(ExportedDemo.ben).friendship == .friends)
    let hidden = await #expect(throws: MusterError.self) { try await client.users.get(ExportedDemo.kai) }
    #expect(hidden?.problem?.type == .userNotFound)
    #expect(try await client.users.search(for: "CLÉO", limit: 5).map(\.username) == ["cleo"])
    #expect(try await client.users.recommended(limit: 5).map(\.user.username) == ["lina"])
    #expect(try await client.notifications.list(unread: true).items.allSatisfy { $0.readAt == nil })
    #expect(try await client.devices.list().items.first?.current == true)
    #expect(try await client.auth.sessions().items.count == 1)
  }

  @MainActor @Test func `a store has the past events, and pages of earlier ones`() async throws {
    let (client, _) = try await client()
    let folder = FileManager.default.temporaryDirectory.appending(path: "muster-preview-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let store = try MusterStore(client: client, folder: folder)
    try await store.refresh()
    let past = try await client.events.past(limit: 100).items
    #expect(store.pastEvents.items == past && !past.isEmpty && store.pastEvents.isUpToDate)
    for try await page in store.earlierEvents { #expect(page.items.isEmpty) }
    try await store.refresh()
    #expect(store.pastEvents.items == past)
  }

  @Test func `lists are read in pages`() async throws {
    let (client, _) = try await client()
    let first = try await client.events.list(limit: 5)
    let cursor = try #require(first.nextCursor)
    let second = try await client.events.list(limit: 100, cursor: cursor)
    #expect(first.items.count == 5 && second.items.count == 8 && second.nextCursor == nil)
    #expect(second.timestamp == first.timestamp)
    try await client.events.answer(.going, to: ExportedDemo.trailRun)
    // The pages no longer fit together.
    #expect(try await client.events.list(limit: 100, cursor: cursor).timestamp == nil)
  }

  @Test func `an answer shows in every list, and makes exactly these stale`() async throws {
    let (client, _) = try await client()
    var verdicts = try await client.cache.validate([:])
    #expect(verdicts.count == 9 && verdicts.values.allSatisfy(\.invalidate))
    let claims = verdicts.mapValues { verdict in
      Claim(timestamp: verdict.timestamp, items: verdict.changed?.mapValues(\.digest))
    }
    #expect(try await client.cache.validate(claims).values.allSatisfy { !$0.invalidate })

    let event = try await client.events.answer(.going, to: ExportedDemo.trailRun)
    #expect(event.myStatus == .going && event.participants?.contains { $0.user?.id == ExportedDemo.ana } == true)
    let events = try await client.events.list()
    #expect(events.items.first { $0.id == event.id }?.counts == event.counts)
    let invitations = try await client.invitations.list()
    #expect(invitations.items.first { $0.id == event.id }?.status == .going)
    verdicts = try await client.cache.validate(claims)
    #expect(Set(verdicts.filter(\.value.invalidate).keys) == [.events, .invitations])
    let verdict = try #require(verdicts[.events])
    #expect(verdict.timestamp == events.timestamp && verdict.changed?.keys.map(\.self) == [event.id.wire])
    #expect(verdict.keys == events.items.map(\.id.wire))
    #expect(try verdict.changed?[event.id.wire]?.item.decode(as: Event.self).myStatus == .going)
    let stale = [CacheCollection.events: claims[.events] ?? Claim(timestamp: nil)]
    let full = try await client.cache.validate(stale, include: .items)
    #expect(full[.events]?.updatedItems?.count == 13 && full[.events]?.keys == nil)
    let page = try await client.cache.page(of: .events)
    #expect(page.digests.count == 13 && page.timestamp == events.timestamp)
    let digested = try await client.cache.validate(stale, include: .itemsAndDigests)[.events]
    #expect(digested?.updatedItems == full[.events]?.updatedItems && digested?.digests == page.digests)
  }

  @Test func `parts are runs of what the app holds, and new items`() async throws {
    let (client, _) = try await client()
    let first = try await client.cache.validate([.events: Claim(timestamp: nil, held: [], limit: 5)])[.events]
    #expect(first?.parts?.compactMap(\.item).count == 5 && first?.keys == nil)
    let page = try await client.cache.page(of: .events)
    let cursor = try #require(first?.nextCursor)
    // The first claim had no digests of the rest.
    let held = Array(page.digests.dropFirst(6))
    let rest = try await client.cache.validate([.events: Claim(timestamp: nil, held: held, cursor: cursor)])[.events]
    #expect(rest?.timestamp == first?.timestamp && rest?.nextCursor == nil)
    #expect(rest?.parts?.compactMap(\.item) == [page.items[5]])
    #expect(rest?.parts?.compactMap(\.first) == Array(held.indices))
    try await client.events.answer(.going, to: ExportedDemo.trailRun)
    // The parts no longer fit together.
    let late = try await client.cache.validate([.events: Claim(timestamp: nil, held: held, cursor: cursor)])[.events]
    #expect(late == Verdict(invalidate: true))
    let claim = Claim(timestamp: page.timestamp, held: page.digests)
    let changed = try await client.cache.validate([.events: claim])[.events]
    #expect(changed?.parts?.compactMap(\.item).map { $0["myStatus"] } == [.string("going")])
    #expect(changed?.parts?.compactMap(\.count).reduce(0, +) == 12)
  }

  @Test func `a repeated request gets the same response`() async throws {
    let (client, _) = try await client()
    let draft = EventDraft(
      title: "Picnic", startTime: Date(timeIntervalSince1970: 2_000_000_000), timeZone: .lisbon,
      inviteeIds: [ExportedDemo.ben])
    let key = IdempotencyKey.random()
    let event = try await client.events.create(draft, key: key)
    #expect(try await client.events.create(draft, key: key) == event)
    #expect(try await client.events.list().items.filter { $0.title == "Picnic" }.map(\.id) == [event.id])
  }

  @Test func `accepting a request makes a friend`() async throws {
    let (client, _) = try await client()
    let request = try #require(try await client.friends.requests.list(.incoming).items.last)
    #expect(try await client.friends.requests.accept(request.id).status == .accepted)
    #expect(try await client.friends.list().items.first?.id == ExportedDemo.fatima)
    #expect(try await client.friends.requests.list(.filtered).items.isEmpty)
  }

  @Test func `a picture is shown as it was sent, and an item is marked by its id`() async throws {
    let (client, _) = try await client()
    let pictured = try await client.me.setPicture(Data([1, 2, 3]), contentType: "image/png")
    #expect(pictured.pictureUrl?.absoluteString == "data:image/png;base64,AQID")
    let inbox = try await client.notifications.list()
    let unread = try #require(inbox.unread)
    let one = try #require(inbox.items.first { $0.readAt == nil })
    #expect(try await client.notifications.markRead(ids: [one.id]) == unread - 1)
  }

  @Test func `changes appear on the stream`() async throws {
    let (client, transport) = try await client()
    var events = client.notifications.stream().makeAsyncIterator()
    #expect(try await events.next() == .connected)
    try await client.blocks.unblock(ExportedDemo.kai)
    guard case .changed(let stamps)? = try await events.next() else {
      Issue.record("no change arrived")
      return
    }
    #expect(stamps == [.blocks: try #require(try await client.blocks.list().timestamp)])
    transport.failures = .offline
    await #expect(throws: URLError.self) {
      try await transport.open(TransportRequest(method: "GET", url: transport.baseURL))
    }
  }

  @Test func `requests fail on demand`() async throws {
    let (client, transport) = try await client(.offline)
    await #expect(throws: MusterError.self) { try await client.me.get() }
    transport.failures = PreviewFailures(everyNth: 3)
    var failed = 0
    for _ in 0..<9 { do { _ = try await client.me.get() } catch { failed += 1 } }
    #expect(failed == 3)
    let busy = Problem(type: .busy, title: "Busy", status: 503, retryAfter: 7)
    transport.failures = .refusing("/events/*", method: "PUT", with: busy)
    do {
      try await client.events.answer(.going, to: ExportedDemo.trailRun)
      Issue.record("not refused")
    } catch {
      #expect((error as? MusterError)?.problem == busy)
    }
    // Without an effect, and nothing else is refused.
    #expect(try await client.events.get(ExportedDemo.trailRun).myStatus == .invited)
    transport.failures = .none
    transport.latency = 0.1
    let start = ContinuousClock.now
    _ = try await client.me.get()
    #expect(ContinuousClock.now - start >= .milliseconds(100))
  }

  @Test func `a client can begin without a login, and without an export`() async throws {
    let client = try PreviewClient.make(folder: try await ExportedDemo.folder, isLoggedIn: false)
    await #expect(throws: MusterError.loggedOut) { try await client.me.get() }
    _ = try await client.auth.logIn(as: "anyone", password: "anything")
    #expect(client.userID == ExportedDemo.ana)
    #expect(try await client.me.get().username == "ana")
    let missing = PreviewClient.make(resource: "Missing")
    let error = await #expect(throws: MusterError.self) { try await missing.me.get() }
    guard case .unreachable(let reason)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(reason.contains("index.json"))
  }
}
