import Foundation
import MusterKit
import Postgres
import TestSupport
import Testing

/// ``Event/canAnswer(at:)`` and the service, for each reason, in both directions.
@Suite struct AnsweringTests {
  /// The answers that are tried, one after the other, at each event.
  private static let tries: [(answer: Answer, plusOnes: Int?)] = [
    (.maybe, nil), (.going, 2), (.going, 1), (.going, nil), (.going, 0), (.going, 3), (.declined, nil),
    (.declined, nil),
    (.going, 1), (.maybe, 4), (.maybe, 3), (.going, nil),
  ]

  private func friends() async throws -> (server: MusterServer, ana: TestUser, ben: TestUser, cleo: TestUser) {
    let server = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: server.url)
    let cleo = try await TestUser.register("cleo", at: server.url)
    try await ana.befriend(cleo)
    return (server, ana, ben, cleo)
  }

  /// An event of ana with places for the guests' company.
  private func event(of ana: TestUser, capacity: Int? = nil, maxPlusOnes: Int = 0, for guests: TestUser...)
    async throws -> Event
  {
    var draft = EventDraft.planned("Picnic", capacity: capacity, inviting: guests)
    draft.maxPlusOnes = maxPlusOnes
    return try await ana.client.events.create(draft)
  }

  /// Changes the row of an event.
  private func change(_ event: Event, _ assignments: SQL, at server: MusterServer) async throws {
    let _: Int32 = try await server.value(
      "UPDATE events SET \(assignments) WHERE id = \(event.id.rawValue) RETURNING version")
  }

  /// Answers as a user, and compares each response with what the event said before.
  ///
  /// - Returns: the reasons that the event gave.
  @discardableResult
  private func compare(_ user: TestUser, at id: Event.ID) async throws -> Set<Answerability.Reason> {
    var reasons: Set<Answerability.Reason> = []
    for (answer, plusOnes) in Self.tries {
      let before = try await user.client.events.get(id)
      let expected = before.canAnswer(answer, bringing: plusOnes)
      let comment: Comment = "\(answer) with \(String(describing: plusOnes)), \(before.myStatus) before: \(expected)"
      do {
        let after = try await user.client.events.answer(answer, to: id, plusOnes: plusOnes)
        let isWaiting = answer == .going && after.myStatus == .waitlisted
        #expect(expected == (isWaiting ? .waitlist : .yes), comment)
        if before.canAnswer() == .no(.closed) {
          #expect(after.myStatus == before.myStatus && after.myPlusOnes == before.myPlusOnes, comment)
        } else if answer == .going, plusOnes == nil {
          #expect(before.canAnswer() == expected, comment)
        }
      } catch MusterError.refused(let problem) {
        #expect(expected.reason?.problemType == problem.type, comment)
        if problem.type != .invalidFields, plusOnes == nil { #expect(before.canAnswer() == expected, comment) }
      }
      if let reason = expected.reason { reasons.insert(reason) }
    }
    return reasons
  }

  @Test func `hosts, and guests of cancelled and archived events, cannot answer`() async throws {
    let (server, ana, ben, cleo) = try await friends()
    let event = try await event(of: ana, for: cleo)
    try await ana.client.events.addHost(ben.id, to: event.id)
    try await ben.client.proposals.accept(try #require(try await ben.client.proposals.list().items.first).id)
    for host in [ana, ben] { #expect(try await compare(host, at: event.id) == [.hosting]) }
    #expect(try await compare(cleo, at: event.id) == [.noPlusOnes])
    let other = try await self.event(of: ana, for: cleo)
    try await ana.client.events.cancel(other.id)
    #expect(try await compare(cleo, at: other.id) == [.cancelled])
    // The worker archives it.
    try await change(
      event, "start_time = now() - interval '31 hours', live_until = now() - interval '1 hour'", at: server)
    try await eventually(within: .seconds(60)) { try await cleo.client.events.past().items.map(\.id) == [event.id] }
    #expect(try await compare(cleo, at: event.id) == [.archived])
  }

  @Test func `hosts can do what hosts do while the event is open, and guests cannot`() async throws {
    let (server, ana, ben, cleo) = try await friends()
    let event = try await event(of: ana, for: cleo)
    try await ana.client.events.addHost(ben.id, to: event.id)
    try await ben.client.proposals.accept(try #require(try await ben.client.proposals.list().items.first).id)
    /// Who can host it, by what the event says, and by what the service does.
    func hosts(_ id: Event.ID, _ note: String) async throws -> [String] {
      var names: [String] = []
      for (name, user) in [("ana", ana), ("ben", ben), ("cleo", cleo)] {
        let says = try await user.client.events.get(id).canHost()
        let edit = EventEdit(note: .set("\(note) \(name)"))
        let does = (try? await user.client.events.edit(id, applying: edit)) != nil
        #expect(says == does, "\(note) \(name)")
        if says { names.append(name) }
      }
      return names
    }
    #expect(try await hosts(event.id, "open") == ["ana", "ben"])
    try await change(
      event, "start_time = now() - interval '31 hours', live_until = now() - interval '1 hour'", at: server)
    try await eventually(within: .seconds(60)) { try await cleo.client.events.past().items.map(\.id) == [event.id] }
    #expect(try await hosts(event.id, "archived") == [])
    let other = try await self.event(of: ana, for: ben, cleo)
    #expect(try await hosts(other.id, "open") == ["ana"])
    try await ana.client.events.cancel(other.id)
    #expect(try await hosts(other.id, "cancelled") == [])
  }

  @Test func `an event that is over takes answers until it is archived`() async throws {
    let (server, ana, _, cleo) = try await friends()
    let event = try await event(of: ana, for: cleo)
    try await change(
      event, "start_time = now() - interval '29 hours', live_until = now() + interval '1 hour'", at: server)
    #expect(try await cleo.client.events.get(event.id).canAnswer() == .yes)
    #expect(try await compare(cleo, at: event.id) == [.noPlusOnes])
  }

  @Test func `a guest who waits for an approval cannot answer`() async throws {
    let (_, ana, _, _) = try await friends()
    let dev = try await TestUser.register("dev", at: try await MusterServer.shared.value.url)
    let event = try await event(of: ana)
    let link = try await ana.client.events.links.create(ShareLinkDraft(kind: .answer, approval: true), for: event.id)
    let token = try #require(link.url.flatMap(ShareLink.token))
    try await dev.client.links.join(using: token)
    #expect(try await compare(dev, at: event.id) == [.pending])
    try await ana.client.events.approve(Guest.ID(dev.id), at: event.id)
    #expect(try await compare(dev, at: event.id) == [.noPlusOnes])
  }

  @Test func `after the deadline, a guest cannot change the answer`() async throws {
    let (server, ana, ben, cleo) = try await friends()
    let event = try await event(of: ana, maxPlusOnes: 3, for: ben, cleo)
    try await cleo.client.events.answer(.going, to: event.id, plusOnes: 3)
    try await change(event, "answer_by = now() - interval '1 minute'", at: server)
    for guest in [ben, cleo] {
      #expect(try await guest.client.events.get(event.id).canAnswer() == .no(.closed))
      #expect(try await compare(guest, at: event.id) == [.closed, .tooManyPlusOnes(maximum: 3)])
    }
  }

  @Test func `the room decides about people, and a full event has a waiting list`() async throws {
    let (_, ana, ben, cleo) = try await friends()
    let event = try await event(of: ana, capacity: 3, maxPlusOnes: 3, for: ben, cleo)
    #expect(try await compare(ben, at: event.id) == [.noRoom, .tooManyPlusOnes(maximum: 3)])
    // Ben is going with three people or as many as fit; Cleo finds less room.
    try await ben.client.events.answer(.going, to: event.id, plusOnes: 1)
    #expect(try await cleo.client.events.get(event.id).canAnswer() == .yes)
    #expect(try await cleo.client.events.get(event.id).canAnswer(.going, bringing: 1) == .waitlist)
    try await compare(cleo, at: event.id)
    try await cleo.client.events.answer(.going, to: event.id, plusOnes: 1)
    #expect(try await cleo.client.events.get(event.id).myStatus == .waitlisted)
    try await compare(ben, at: event.id)
    // The event becomes smaller than the company of its guests.
    for capacity in [2, 1] {
      try await ana.client.events.edit(event.id, applying: EventEdit(capacity: .set(capacity)))
      for guest in [ben, cleo] { try await compare(guest, at: event.id) }
    }
  }
}
