import Foundation
import Postgres
import TestSupport
import Testing

@testable import MusterKit

/// The writes of hosts, and reports, made on a phone without a network.
@MainActor @Suite struct HostWriteTests {
  private struct Scene {
    let server: MusterServer
    let ana: TestUser
    let ben: TestUser
    let cleo: TestUser
    let event: Event
    /// Of ana, who has the event's screen open.
    let phone: Phone
    let opened: OpenedEvent

    @MainActor func guest(_ user: TestUser) throws -> Guest {
      try #require(opened.event?.guests?.items.first { $0.user?.id == user.id })
    }

    /// The guest as the service has it.
    func current(_ user: TestUser) async throws -> Guest? {
      try await ana.client.events.guests(of: event.id).items.first { $0.user?.id == user.id }
    }
  }

  /// Ana's event has room for one. Ben and cleo are invited, as friends of ana's.
  private func run(_ body: @MainActor (Scene) async throws -> Void) async throws {
    let server = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: server.url)
    let cleo = try await TestUser.register("cleo", at: server.url)
    try await ana.befriend(cleo)
    let event = try await ana.client.events.create(.planned("Picnic", capacity: 1, inviting: [ben, cleo]))
    let phone = try await Phone(of: ana, at: server)
    try await phone.catchUp()
    let opened = phone.store.opened(event.id)
    try await opened.refresh()
    try await body(
      Scene(server: server, ana: ana, ben: ben, cleo: cleo, event: event, phone: phone, opened: opened))
    await phone.end()
  }

  // MARK: Answers

  @Test func `answers that a host sets offline show with all that follows, and arrive`() async throws {
    try await run { scene in
      let (phone, opened) = (scene.phone, scene.opened)
      phone.proxy.isOffline = true
      try await phone.store.perform(.setAnswer(.going, of: scene.guest(scene.ben), at: scene.event.id))
      try await phone.store.perform(.setAnswer(.going, of: scene.guest(scene.cleo), at: scene.event.id))
      #expect(try scene.guest(scene.ben).status == .going && scene.guest(scene.cleo).status == .waitlisted)
      #expect(opened.event?.counts == Counts(going: 1, waitlisted: 1) && opened.hasPendingWrites)
      #expect(phone.store.outbox.isPending(scene.cleo.id) && !phone.store.events.isUpToDate)
      try phone.relaunch()
      phone.proxy.isOffline = false
      try await phone.catchUp()
      #expect(phone.store.outbox.pending.isEmpty && phone.store.outbox.refusals.isEmpty)
      #expect(try await scene.current(scene.ben)?.status == .going)
      #expect(try await scene.current(scene.cleo)?.status == .waitlisted)
    }
  }

  @Test func `an answer that the guest has given meanwhile stays, and the host sees both`() async throws {
    try await run { scene in
      let phone = scene.phone
      phone.proxy.isOffline = true
      try await phone.store.perform(.setAnswer(.going, of: scene.guest(scene.ben), at: scene.event.id))
      try await scene.ben.client.events.answer(.declined, to: scene.event.id)
      phone.proxy.isOffline = false
      try await phone.catchUp()
      #expect(try scene.guest(scene.ben).status == .declined)
      let refusal = try #require(phone.store.outbox.refusals.first)
      #expect(refusal.newerState == .answer(.declined, plusOnes: 0))
      // The host has talked to him.
      try await phone.store.sendAgain(refusal)
      try await phone.catchUp()
      #expect(phone.store.outbox.refusals.isEmpty)
      #expect(try await scene.current(scene.ben)?.status == .going)
    }
  }

  @Test func `the second of two answers for a guest is based on what became of the first`() async throws {
    try await run { scene in
      let phone = scene.phone
      phone.proxy.isOffline = true
      try await phone.store.perform(.setAnswer(.going, of: scene.guest(scene.ben), at: scene.event.id))
      try await phone.store.perform(.setAnswer(.going, of: scene.guest(scene.cleo), at: scene.event.id))
      // Meanwhile, the event has become larger, so Cleo gets a place at once.
      try await scene.ana.client.events.edit(scene.event.id, applying: EventEdit(capacity: .set(2)))
      #expect(try scene.guest(scene.cleo).status == .waitlisted)
      try await phone.store.perform(.setAnswer(.maybe, of: scene.guest(scene.cleo), at: scene.event.id))
      phone.proxy.isOffline = false
      try await phone.catchUp()
      #expect(phone.store.outbox.refusals.isEmpty)
      #expect(try await scene.current(scene.cleo)?.status == .maybe)
    }
  }

  @Test func `an answer that the guest has given with people is no basis for the host's next one`() async throws {
    try await run { scene in
      let phone = scene.phone
      try await scene.ana.client.events.edit(
        scene.event.id, applying: EventEdit(capacity: .set(5), maxPlusOnes: 3))
      try await phone.catchUp()
      phone.proxy.isOffline = true
      for answer in [Answer.going, .declined] {
        try await phone.store.perform(.setAnswer(answer, of: scene.guest(scene.ben), at: scene.event.id))
      }
      try await scene.ben.client.events.answer(.going, to: scene.event.id, plusOnes: 2)
      phone.proxy.isOffline = false
      try await phone.catchUp()
      #expect(phone.store.outbox.refusals.map(\.newerState) == [.answer(.going, plusOnes: 2)])
      let now = try #require(try await scene.current(scene.ben))
      #expect(now.status == .going && now.plusOnes == 2 && phone.store.outbox.pending.isEmpty)
    }
  }

  // MARK: Approval

  @Test func `an approval that arrives late changes nothing that was decided meanwhile`() async throws {
    try await run { scene in
      let (phone, events) = (scene.phone, scene.ana.client.events)
      let link = try await events.links.create(ShareLinkDraft(kind: .answer), for: scene.event.id)
      let token = try #require(link.url.flatMap(ShareLink.token))
      let dev = try await TestUser.register("dev", at: scene.server.url)
      let eve = try await TestUser.register("eve", at: scene.server.url)
      let fay = try await TestUser.register("fay", at: scene.server.url)
      for user in [dev, eve, fay] { try await user.client.links.join(using: token) }
      try await scene.opened.refresh()
      phone.proxy.isOffline = true
      for user in [dev, eve, fay] {
        let guest = try scene.guest(user)
        #expect(guest.status == .pending)
        try await phone.store.perform(.approve(guest, at: scene.event.id))
        #expect(try scene.guest(user).status == .invited)
      }
      // On another device of a host.
      for user in [dev, fay] { try await events.withdraw(Guest.ID(user.id), from: scene.event.id) }
      try await fay.client.links.join(using: token)
      try await events.approve(Guest.ID(eve.id), at: scene.event.id)
      try await eve.client.events.answer(.declined, to: scene.event.id)
      phone.proxy.isOffline = false
      try await phone.catchUp()
      #expect(phone.store.outbox.refusals.map(\.problemType) == [.guestNotFound, nil])
      #expect(try await scene.current(fay)?.status == .pending)
      let refusal = try #require(phone.store.outbox.refusals.last)
      guard case .event(let newer)? = refusal.newerState else {
        Issue.record("\(refusal)")
        return
      }
      #expect(newer.guests?.items.contains { $0.user?.id == fay.id && $0.status == .pending } == true)
      // The host has seen that she was turned away.
      try await phone.store.sendAgain(refusal)
      try await phone.catchUp()
      #expect(try await scene.current(fay)?.status == .invited)
      #expect(try await scene.current(dev) == nil)
      #expect(try await scene.current(eve)?.status == .declined)
    }
  }

  // MARK: Hosts and reports

  @Test func `an offer and a report are done as soon as they are sent, and happen once`() async throws {
    try await run { scene in
      let (phone, store) = (scene.phone, scene.phone.store)
      phone.proxy.isOffline = true
      let offer = try await store.perform(.addHost(scene.ben.id, to: scene.event.id))
      try await store.perform(.report(.user(scene.cleo.id), reason: .spam, text: "Advertisements."))
      #expect(store.outbox.isPending(scene.ben.id) && store.outbox.isPending(scene.cleo.id))
      #expect(!offer.isSent && store.outbox.pending.count == 2)
      // The first responses are lost.
      phone.proxy.isOffline = false
      let attempts = Guarded<[String: Int]>([:])
      phone.proxy.plan { exchange, _ in
        guard let key = exchange.key else { return .none }
        return attempts.withLock { attempts in
          attempts[key, default: 0] += 1
          return attempts[key] == 1 ? .loseResponse : .none
        }
      }
      try await phone.catchUp()
      #expect(store.outbox.pending.isEmpty && store.outbox.refusals.isEmpty)
      #expect(attempts.withLock { $0.values.sorted() } == [2, 2])
      #expect(try await scene.ana.client.events.hostOffers(of: scene.event.id).map(\.user.id) == [scene.ben.id])
      let reports: Int = try await scene.server.value(
        "SELECT count(*) FROM reports WHERE reporter_id = \(scene.ana.id.rawValue)")
      #expect(reports == 1)
      #expect(store.folder.files(in: OutboxFiles.subfolder) == 0)
    }
  }

  @Test func `a co-host is removed, and one who leaves no longer has the event`() async throws {
    try await run { scene in
      for user in [scene.ben, scene.cleo] {
        try await scene.ana.client.events.addHost(user.id, to: scene.event.id)
        let offer = try #require(try await user.client.proposals.list().items.first)
        try await user.client.proposals.accept(offer.id)
      }
      let phone = scene.phone
      let other = try await Phone(of: scene.cleo, at: scene.server, seed: 2)
      for phone in [phone, other] {
        try await phone.catchUp()
        phone.proxy.isOffline = true
      }
      try await phone.store.perform(.removeHost(scene.ben.id, from: scene.event.id))
      try await other.store.perform(.removeHost(scene.cleo.id, from: scene.event.id))
      #expect(scene.opened.event?.hosts.map(\.id) == [scene.ana.id, scene.cleo.id])
      #expect(other.store.events.items.isEmpty)
      for phone in [phone, other] {
        phone.proxy.isOffline = false
        try await phone.catchUp()
        #expect(phone.store.outbox.pending.isEmpty && phone.store.outbox.refusals.isEmpty)
      }
      try await phone.catchUp()
      #expect(phone.store.events.items.map { $0.hosts.map(\.id) } == [[scene.ana.id]])
      #expect(other.store.events.items.isEmpty)
      await other.end()
    }
  }
}

extension RefusedWrite {
  fileprivate var problemType: Problem.Slug? { if case .refused(let problem) = reason { problem.type } else { nil } }
}

extension StoreFolder {
  fileprivate func files(in subfolder: String) -> Int { (try? names(in: subfolder).count) ?? -1 }
}
