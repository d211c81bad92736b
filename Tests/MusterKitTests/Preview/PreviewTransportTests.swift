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

  private func problem(_ body: () async throws -> Void) async -> Problem.Slug? {
    do {
      try await body()
      return nil
    } catch {
      return (error as? MusterError)?.problem?.type
    }
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
    #expect(await problem { _ = try await client.users.get(ExportedDemo.kai) } == .userNotFound)
    #expect(try await client.users.search(for: "CLÉO", limit: 5).map(\.username) == ["cleo"])
    #expect(try await client.users.recommended(limit: 5).map(\.user.username) == ["lina"])
    #expect(try await client.notifications.list(unread: true).items.allSatisfy { $0.readAt == nil })
    #expect(try await client.devices.list().items.first?.current == true)
    #expect(try await client.auth.sessions().items.count == 1)
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

  @Test func `answers follow the rules of the service`() async throws {
    let (client, _) = try await client()
    // Full, and others wait.
    #expect(try await client.events.answer(.declined, to: ExportedDemo.filmNight).myStatus == .declined)
    #expect(try await client.events.answer(.going, to: ExportedDemo.filmNight).myStatus == .waitlisted)
    for (event, slug) in [
      (ExportedDemo.climbing, Problem.Slug.ownEvent), (ExportedDemo.cancelled, .eventCancelled),
      (ExportedDemo.archived, .eventArchived), (Event.ID(), .eventNotFound),
    ] {
      #expect(await problem { try await client.events.answer(.going, to: event) } == slug)
    }
    #expect(await problem { try await client.events.cancel(ExportedDemo.trailRun) } == .notTheCreator)
  }

  @Test func `a guest who asks to come is approved`() async throws {
    let (client, _) = try await client()
    let party = ExportedDemo.party
    let asking = try #require(try await client.events.guests(of: party).items.first { $0.status == .pending })
    let before = try #require(try await client.events.get(party).counts)
    let waiting = await problem { try await client.events.setAnswer(of: asking.id, at: party, to: .maybe) }
    let after = try #require(try await client.events.approve(asking.id, at: party).counts)
    let places = 1 + asking.plusOnes
    #expect(waiting == .approvalPending)
    #expect(after.pending == before.pending - places)
    #expect(after.going + after.invited == before.going + before.invited + places)
    #expect(try await client.events.approve(asking.id, at: party).counts == after)
    #expect(await problem { try await client.events.approve(Guest.ID(), at: party) } == .guestNotFound)
    // A guest without an account also has an id.
    let visitor = try #require(try await client.events.guests(of: party).items.first { $0.user == nil })
    try await client.events.setAnswer(of: visitor.id, at: party, to: .declined)
    #expect(try await client.events.guests(of: party).items.first { $0.id == visitor.id }?.status == .declined)
  }

  @Test func `a co-host edits, reminds, answers for guests and shares links`() async throws {
    let (client, _) = try await client()
    let party = ExportedDemo.party
    let before = try await client.events.get(party)
    #expect((before.myRole, before.myStatus) == (.host, "host") && before.hosts.count == 2 && before.answerBy != nil)
    #expect(try await client.events.edit(party, applying: EventEdit(title: "Party")).title == "Party")
    #expect(await problem { try await client.events.answer(.going, to: party) } == .ownEvent)
    #expect(await problem { try await client.events.cancel(party) } == .notTheCreator)
    #expect(try await client.events.remindGuests(of: party) == 1)
    let dev = try #require(before.participants?.first { $0.status == .invited }?.user)
    let answered = try await client.events.setAnswer(of: Guest.ID(dev.id), at: party, to: .going)
    #expect(answered.counts?.going == (before.counts?.going ?? 0) + 1 && answered.counts?.invited == 0)
    let copy = try await client.events.duplicate(
      party, as: EventCopy(startTime: before.startTime.addingTimeInterval(86_400), invite: true))
    #expect(copy.myRole == .creator && copy.counts?.invited == copy.participants?.count)
    #expect(try await client.events.addHost(ExportedDemo.ben, to: copy.id).hosts == copy.hosts)
    #expect(try await client.proposals.list().items.isEmpty)
    let links = client.events.links
    let planted = try await links.list(of: party)
    #expect(planted.map(\.kind) == [.answer] && planted.first?.maxGuests == 10)
    let made = try await links.create(ShareLinkDraft(kind: .view), for: party)
    #expect(try await links.edit(made.id, of: party, applying: ShareLinkEdit(kind: .answer)).kind == .answer)
    #expect(made.approval)
    #expect(try await client.events.guests(of: party).items.contains { $0.user == nil })
    try await links.revoke(made.id, of: party, removingVisitors: true)
    #expect(try await client.events.guests(of: party).items.contains { $0.user == nil } == false)
    #expect(try await links.list(of: party) == planted)
    #expect(await problem { _ = try await links.list(of: ExportedDemo.trailRun) } == .notAHost)
    try await client.events.removeHost(ExportedDemo.ana, from: party)
    #expect(await problem { _ = try await client.events.get(party) } == .eventNotFound)
  }

  @Test func `events are created, edited and cancelled`() async throws {
    let (client, _) = try await client()
    let draft = EventDraft(
      title: "Picnic", startTime: Date(timeIntervalSince1970: 2_000_000_000), timeZone: .lisbon,
      inviteeIds: [ExportedDemo.ben])
    let key = IdempotencyKey.random()
    let event = try await client.events.create(draft, key: key)
    #expect(event.myStatus == "creator" && event.counts?.invited == 1)
    // A repeated request gets the same response.
    #expect(try await client.events.create(draft, key: key) == event)
    #expect(try await client.events.list().items.last?.id == event.id)
    let edited = try await client.events.edit(
      event.id, applying: EventEdit(note: .set("Bring bread."), capacity: .set(4)))
    #expect(edited.note == "Bring bread." && edited.capacity == 4 && edited.version == 2)
    let stale = await problem {
      try await client.events.edit(event.id, applying: EventEdit(note: .clear), ifVersion: 1)
    }
    #expect(stale == .lostUpdate)
    #expect(try await client.events.withdraw(Guest.ID(ExportedDemo.ben), from: event.id).counts?.invited == 0)
    #expect(try await client.events.invite([ExportedDemo.ben], to: event.id).participants?.count == 1)
    let stranger = await problem { try await client.events.invite([ExportedDemo.lina], to: event.id) }
    #expect(stranger == .invalidFields)
    #expect(try await client.events.cancel(event.id).status == .cancelled)
  }

  @Test func `friends, requests and blocks change`() async throws {
    let (client, _) = try await client()
    let request = try #require(try await client.friends.requests.list(.incoming).items.last)
    #expect(try await client.friends.requests.accept(request.id).status == .accepted)
    #expect(try await client.friends.list().items.first?.id == ExportedDemo.fatima)
    #expect(await problem { try await client.friends.requests.decline(request.id) } == .friendRequestClosed)
    let asked = try await client.friends.requests.send(to: ExportedDemo.lina)
    #expect(asked.status == .pending)
    #expect(try await client.users.get(ExportedDemo.lina).friendship == .requested)
    #expect(try await client.friends.requests.cancel(asked.id).status == .cancelled)
    #expect(await problem { try await client.friends.requests.send(to: ExportedDemo.ben) } == .alreadyFriends)
    try await client.blocks.block(ExportedDemo.ben)
    #expect(try await client.blocks.list().items.first?.id == ExportedDemo.ben)
    #expect(try await client.friends.list().items.contains { $0.id == ExportedDemo.ben } == false)
    #expect(await problem { _ = try await client.users.get(ExportedDemo.ben) } == .userNotFound)
    try await client.blocks.unblock(ExportedDemo.ben)
    #expect(try await client.users.get(ExportedDemo.ben).friendship == .none)
    try await client.friends.end(with: ExportedDemo.fatima)
    #expect(try await client.friends.list().items.count == 4)
  }

  @Test func `the profile, the inbox and the preferences change`() async throws {
    let (client, _) = try await client()
    let before = try await client.me.get()
    let edited = try await client.me.edit(ProfileEdit(displayName: "Ana D.", bio: .clear))
    #expect(edited.displayName == "Ana D." && edited.bio == nil && edited.timestamp != before.timestamp)
    let reachable = try await client.me.edit(ProfileEdit(requestsFrom: .noOne, findableBy: .friendsOfFriends))
    #expect(reachable.requestsFrom == .noOne && reachable.findableBy == .friendsOfFriends)
    #expect(reachable.displayName == "Ana D.")
    #expect(try await client.friends.requests.list(.filtered).items.isEmpty)
    let pictured = try await client.me.setPicture(Data([1, 2, 3]), contentType: "image/png")
    #expect(pictured.pictureUrl?.absoluteString == "data:image/png;base64,AQID")
    let inbox = try await client.notifications.list()
    let unread = try #require(inbox.unread)
    let one = try #require(inbox.items.first { $0.readAt == nil })
    #expect(try await client.notifications.markRead(ids: [one.id]) == unread - 1)
    #expect(try await client.notifications.markAllRead() == 0)
    let preferences = try await client.notifications.setPreferences(NotificationPreferences([.eventReminder: false]))
    #expect(!preferences[.eventReminder] && preferences[.eventInvited])
    #expect(try await client.notifications.preferences() == preferences)
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
