import Foundation
import Postgres
import Testing

@testable import MusterKit
@testable import PlansAppModels

/// Events, answers, guests and links, against a service.
@MainActor @Suite struct AppEventTests {
  /// A host and a friend, each with a phone.
  private func friends() async throws -> (ana: AppPhone, ben: AppPhone, user: User) {
    let server = try await MusterServer.shared.value
    let (ana, ben) = (AppPhone(at: server), AppPhone(at: server))
    try await ana.register("ana")
    let user = try await ben.register("ben")
    try await ana.befriend(ben)
    return (ana, ben, user)
  }

  @Test func `an event is made and changed without a network, and reaches its guests`() async throws {
    let (ana, ben, user) = try await friends()
    ana.network.isLost.change { $0 = true }
    let home = try ana.home
    let editor = EventEditor(in: home)
    #expect(editor.isNew && editor.problem == "Please enter a title.")
    #expect(await editor.save() == nil)
    editor.draft.title = "Pasta night"
    editor.draft.hasEnd = true
    editor.draft.hasDeadline = true
    editor.draft.startTime += 86_400
    #expect(editor.draft.endTime == editor.draft.startTime + 7200, "The end moves along.")
    editor.draft.endTime = editor.draft.startTime
    #expect(editor.problem == "The end must be after the start.")
    editor.draft.hasEnd = false
    editor.draft.answerBy = editor.draft.startTime + 1
    #expect(editor.problem == "The deadline for answers must be before the start.")
    editor.draft.hasDeadline = false
    editor.draft[invites: user.id] = true
    (editor.draft.place, editor.draft.noteText, editor.draft.places) = ("Kitchen", "Bring wine.", 4)
    let id = try #require(await editor.save())
    let row = try #require(EventList(home: home).plans.first { $0.id == id })
    #expect(row.isPending && row.label.hasSuffix("You are hosting, Not sent yet"))

    ana.network.isLost.change { $0 = false }
    try await home.store.refresh()
    try await ben.refresh { EventList(home: $0).invitations.contains { $0.id == id } }
    let event = try #require(try ben.home.store.events.items.first { $0.id == id })
    #expect(event.location?.name == "Kitchen" && event.note == "Bring wine." && event.capacity == 4)

    let change = EventEditor(home.store.events.items.first { $0.id == id }, in: home)
    #expect(!change.isNew)
    (change.draft.title, change.draft.noteText, change.draft.places) = ("Pasta and games", "", 0)
    #expect(await change.save() == id)
    try await home.store.refresh()
    try await ben.refresh { $0.store.events.items.contains { $0.title == "Pasta and games" } }
    let changed = try #require(try ben.home.store.events.items.first { $0.id == id })
    #expect(changed.note == nil && changed.capacity == nil && changed.location?.name == "Kitchen")
  }

  @Test func `an event that is over stays on the phone`() async throws {
    let (ana, ben, user) = try await friends()
    let id = try await ana.createEvent("Pasta night", inviting: [user])
    try await ben.refresh { EventList(home: $0).invitations.contains { $0.id == id } }
    try await MusterServer.shared.value.endEvents(where: "id = \(id.rawValue)")
    try await ben.refresh { EventList(home: $0).past.map(\.id) == [id] }
    ben.network.isLost.change { $0 = true }
    ben.relaunch()
    let home = try ben.home
    await home.store.load()
    let list = EventList(home: home)
    #expect(list.past.map(\.event.title) == ["Pasta night"] && list.invitations.isEmpty)
    #expect(EventPage(id, in: home).event?.title == "Pasta night")
  }

  @Test func `the user decides between two changes of the same, and a change of something else is kept`() async throws {
    let phone = AppPhone(at: try await MusterServer.shared.value)
    let ana = try await phone.register("ana")
    let id = try await phone.createEvent("Picnic") { $0.noteText = "At noon" }
    let other = AppPhone(at: try await MusterServer.shared.value)
    try await other.logIn(ana)
    try await other.home.store.refresh()
    func change(_ phone: AppPhone, _ change: (inout EventDraft) -> Void) async throws {
      let editor = EventEditor(try phone.home.store.events.items.first { $0.id == id }, in: try phone.home)
      change(&editor.draft)
      #expect(await editor.save() == id)
    }

    // Both made on the same event.
    phone.network.isLost.change { $0 = true }
    try await change(phone) { $0.title = "Picnic by the river" }
    try await change(other) { $0.noteText = "At one" }
    try await other.home.store.refresh()
    phone.network.isLost.change { $0 = false }
    try await phone.home.store.refresh()
    let merged = try #require(try phone.home.store.events.items.first { $0.id == id })
    #expect(merged.title == "Picnic by the river" && merged.note == "At one")
    #expect(try Refusals(home: phone.home).all.isEmpty)

    phone.network.isLost.change { $0 = true }
    try await change(phone) { $0.title = "Mine" }
    try await other.home.store.refresh()
    try await change(other) { $0.title = "Theirs" }
    try await other.home.store.refresh()
    phone.network.isLost.change { $0 = false }
    try await phone.home.store.refresh()
    let refusals = Refusals(home: try phone.home)
    let refusal = try #require(refusals.all.first)
    #expect(refusal.sentence == "Another host has changed the same in the meantime.")
    #expect(refusals.againButton(refusal) == "Use mine" && refusals.dismissButton(refusal) == "Keep the newer one")
    #expect(try phone.home.store.events.items.first { $0.id == id }?.title == "Theirs")
    await refusals.sendAgain(refusal)
    try await phone.home.store.refresh()
    #expect(try refusals.all.isEmpty && phone.home.store.events.items.first { $0.id == id }?.title == "Mine")
  }

  @Test func `plus-ones change the answer, and the choices say what does not fit`() async throws {
    let (ana, ben, user) = try await friends()
    let id = try await ana.createEvent("Dinner", inviting: [user]) { ($0.places, $0.maxPlusOnes) = (3, 4) }
    try await ben.refresh { $0.store.events.items.contains { $0.id == id } }
    let page = try await ben.page(of: id)
    #expect(page.choices.map(\.answer.title) == ["Going", "Maybe", "Not going"])
    #expect(page.choices.allSatisfy { $0.isPossible && $0.note == nil && !$0.isChosen } && page.maximumPlusOnes == 4)
    // Before an answer, the number waits for one.
    await page.bring(1)
    #expect(try page.plusOnes == 1 && page.event?.myStatus == .invited && ben.home.unsent == 0)
    await page.answer(.going)
    #expect(page.answerNote == "Not sent yet." && page.choices[0].isChosen)
    await page.refresh()
    #expect(page.event?.myPlusOnes == 1 && page.answerNote == nil)
    let guests = GuestList(of: try await ana.page(of: id))
    #expect(guests.groups.first { $0.status == .going }?.guests.map(\.label) == ["\(user.displayName) and 1 more"])
    #expect(guests.groups.first { $0.status == .going }?.title == "Going: 2")

    // After one, it changes the answer.
    await page.bring(2)
    await page.refresh()
    #expect(page.event?.myPlusOnes == 2 && page.event?.counts?.going == 3)
    await page.bring(3)
    await page.refresh()
    #expect(page.refusals.all.map(\.sentence) == ["There is not enough room for that many people."])
    #expect(page.event?.myPlusOnes == 2)
  }

  @Test func `a full event leads to the waiting list, in words`() async throws {
    let (ana, ben, user) = try await friends()
    let cleo = AppPhone(at: try await MusterServer.shared.value)
    let cleoUser = try await cleo.register("cleo")
    try await ana.befriend(cleo)
    let id = try await ana.createEvent("Duet", inviting: [user, cleoUser]) { $0.places = 1 }
    try await ben.refresh { $0.store.events.items.contains { $0.id == id } }
    let first = try await ben.page(of: id)
    await first.answer(.going)
    await first.refresh()
    try await cleo.refresh { $0.store.events.items.contains { $0.id == id && $0.counts?.going == 1 } }
    let second = try await cleo.page(of: id)
    #expect(second.choices.first { $0.answer == .going }?.note == "Joins the waiting list")
    await second.answer(.going)
    await second.refresh()
    #expect(second.answerNote == "You are on the waiting list.")
    let list = GuestList(of: try await ana.page(of: id))
    #expect(list.groups.map(\.status) == [.going, .waitlisted])
  }

  @Test func `an answer after the deadline is refused in words, and then no longer offered`() async throws {
    let (ana, ben, user) = try await friends()
    let id = try await ana.createEvent("Early birds", inviting: [user]) { $0.hasDeadline = true }
    try await ben.refresh { $0.store.events.items.contains { $0.id == id } }
    let page = try await ben.page(of: id)
    // The copy is older than the deadline.
    let server = try await MusterServer.shared.value
    let past: Int = try await server.value(
      """
      WITH moved AS (
        UPDATE events SET answer_by = now() - interval '1 hour' WHERE id = \(id.rawValue) RETURNING 1)
      SELECT count(*) FROM moved
      """)
    #expect(past == 1 && page.canAnswer)
    await page.answer(.going)
    await page.refresh()
    #expect(
      page.refusals.all.map(\.sentence) == [
        "The deadline for answers has passed. A host can still set your answer."
      ])
    #expect(page.event?.myStatus == .invited)
    let shown = Event.closed(try #require(page.event))
    #expect(shown.canAnswer().reason?.sentence == page.refusals.all.first?.sentence)
  }

  @Test func `a share link opens in the app, after the login, and waits for a host's approval`() async throws {
    let server = try await MusterServer.shared.value
    let (ana, cleo) = (AppPhone(at: server), AppPhone(at: server))
    try await ana.register("ana")
    let id = try await ana.createEvent("Courtyard party")
    let list = GuestList(of: try await ana.page(of: id))
    #expect(list.canManage && list.canCancel)
    await list.makeLink()
    let link = try #require(list.link)

    let router = cleo.account.router
    await router.open(Destination(link), in: cleo.account.home)
    #expect(router.waiting != nil && router.plans.isEmpty)
    let user = try await cleo.register("cleo")
    #expect(router.plans == [id] && router.tab == .plans && router.waiting == nil)
    let page = try await cleo.page(of: id)
    #expect(page.event?.title == "Courtyard party" && !page.canAnswer)
    #expect(page.answerNote == "A host has to approve you first.")
    #expect(!GuestList(of: page).canManage)

    await list.page.refresh()
    let waiting = try #require(list.groups.first)
    #expect(waiting.title == "Waiting for a host: 1" && waiting.guests.map(\.id) == [Guest.ID(user.id)])
    await list.approve(waiting.guests[0])
    await list.page.refresh()
    #expect(list.groups.map(\.status) == [.invited])
    await page.refresh()
    #expect(page.canAnswer && page.answerNote == nil)

    // The same link again changes nothing, and one that was revoked is explained.
    await router.open(Destination(link), in: try cleo.home)
    #expect(try router.plans == [id] && cleo.home.failure == nil)
    let links = try await ana.account.client.events.links.list(of: id)
    try await ana.account.client.events.links.revoke(try #require(links.first).id, of: id)
    await router.open(Destination(link), in: try cleo.home)
    #expect(try cleo.home.failure == "This link does not work any more. Please ask a host for a new one.")
    #expect(router.waiting == nil)
    await ana.account.router.open(Destination(link), in: try ana.home)
    #expect(try ana.home.failure != nil)
  }

  @Test func `hosts remove guests and cancel the event`() async throws {
    let (ana, ben, user) = try await friends()
    let id = try await ana.createEvent("Dinner", inviting: [user])
    let list = GuestList(of: try await ana.page(of: id))
    await list.remove(try #require(list.groups.first?.guests.first))
    await list.page.refresh()
    #expect(list.groups.isEmpty)
    await list.cancelEvent()
    await list.page.refresh()
    #expect(list.page.event?.status == .cancelled && !list.canManage)
    try await ben.refresh { !$0.store.events.items.contains { $0.id == id } }
    let gone = EventPage(id, in: try ben.home)
    await gone.load()
    #expect(gone.failure == "You are no longer invited to this event.")
  }

  @Test func `the inbox leads to its places, and marks what was opened as read`() async throws {
    let (ana, ben, user) = try await friends()
    let id = try await ana.createEvent("Dinner", inviting: [user])
    try await ben.refresh { $0.store.notifications.items.contains { $0.eventId == id } }
    let (inbox, router) = (Inbox(home: try ben.home), Router())
    let unread = inbox.unread
    await inbox.open(try #require(inbox.items.first { $0.eventId == id }), with: router)
    #expect(router.inbox == [id] && inbox.unread == unread - 1)
    await inbox.open(try #require(inbox.items.first { $0.type == .friendRequest }), with: router)
    #expect(router.tab == .friends)
    try await ben.home.store.refresh()
    #expect(inbox.unread == unread - 2)
  }
}

extension Event {
  /// The event as a phone shows it after the deadline.
  fileprivate static func closed(_ event: Event) -> Event {
    var event = event
    event.answerBy = Date(timeIntervalSinceNow: -1)
    return event
  }
}
