import Foundation
import Testing

@testable import MusterKit

/// How lists show writes that are pending.
@Suite struct WriteShowingTests {
  private let ana = ScriptedServer.ana
  private let ben = ScriptedServer.ben
  private let cleo = ScriptedServer.cleo
  private let noon = ScriptedServer.noon
  private let now = ScriptedServer.noon.addingTimeInterval(60)

  private func request(_ number: Int, from sender: Person, to receiver: Person) -> FriendRequest {
    FriendRequest(id: ScriptedServer.id(number), sender: sender, receiver: receiver, createdAt: noon)
  }

  private func notification(_ number: Int, about user: Person) -> InboxItem {
    InboxItem(
      id: ScriptedServer.id(number), createdAt: noon, type: .eventInvited, message: "Come!", userId: user.id)
  }

  /// Ana's lists. Ben is a friend, and cleo has asked.
  private var lists: Lists {
    let events = [ScriptedServer.event(1), ScriptedServer.event(2)]
    return Lists(
      profile: User(
        id: ana.id, username: "ana", displayName: "Ana", bio: "Hi.", requestsFrom: .everyone, createdAt: noon),
      friends: [Friend(user: ben, since: noon)],
      friendRequests: [request(50, from: cleo, to: ana)],
      sentFriendRequests: [],
      events: events,
      invitations: events.map { Invitation(event: $0, status: .invited, invitedAt: noon) },
      blocks: [],
      notifications: [notification(60, about: ben), notification(61, about: cleo)],
      notificationPreferences: NotificationPreferences([.eventUpdated: true, .eventInvited: true]))
  }

  /// The same, where ana is the creator of the first event.
  private var hosting: Lists {
    var lists = lists
    lists.events?[0].myRole = .creator
    return lists
  }

  /// Applies a write, and checks that it changes nothing more when it is applied again.
  private func applying(_ write: Write, to lists: Lists? = nil) -> Lists {
    var once = lists ?? self.lists
    write.apply(to: &once, at: now)
    var twice = once
    write.apply(to: &twice, at: now.addingTimeInterval(60))
    #expect(once == twice)
    var none = Lists()
    write.apply(to: &none, at: now)
    #expect(none == Lists(), "A write shows in lists without a copy.")
    return once
  }

  @Test func `an answer changes the event and the invitation, and moves the counts`() {
    var lists = lists
    lists.events?[0].maxPlusOnes = 2
    lists.invitations?[0].event.maxPlusOnes = 2
    lists = applying(.answer(.going, to: ScriptedServer.event(1).id, plusOnes: 2), to: lists)
    #expect(lists.events?.map(\.myStatus) == [.going, .invited])
    #expect(lists.events?[0].myPlusOnes == 2)
    #expect(lists.events?[0].counts == Counts(invited: 0, going: 3))
    #expect(lists.invitations?.map(\.status) == [.going, .invited])
    #expect(lists.invitations?[0].event == lists.events?[0])
  }

  @Test func `an answer to a full event waits for a place`() {
    var full = lists
    full.events?[0].capacity = 4
    full.events?[0].counts?.going = 4
    let event = ScriptedServer.event(1).id
    #expect(applying(.answer(.going, to: event), to: full).events?[0].myStatus == .waitlisted)
    #expect(applying(.answer(.maybe, to: event), to: full).events?[0].myStatus == .maybe)
    full.events?[0].myStatus = .going
    #expect(applying(.answer(.going, to: event), to: full).events == full.events)
  }

  @Test func `answers to own and to cancelled events show nothing`() {
    var lists = lists
    lists.events?[0].myStatus = "creator"
    lists.events?[0].myRole = .creator
    lists.events?[1].status = .cancelled
    lists.invitations = []
    #expect(applying(.answer(.going, to: ScriptedServer.event(1).id), to: lists) == lists)
    #expect(applying(.answer(.going, to: ScriptedServer.event(2).id), to: lists) == lists)
  }

  @Test func `what the service is known to refuse shows nothing`() {
    let event = ScriptedServer.event(1).id
    #expect(applying(.editEvent(event, applying: EventEdit(title: "Mine"))) == lists)
    #expect(applying(.cancelEvent(event)) == lists)
    #expect(applying(.editEvent(event, applying: EventEdit(title: "Mine"), ifVersion: 7), to: hosting) == hosting)
    #expect(lists.refusal(of: .editEvent(event, applying: EventEdit(title: "Mine")), at: now)?.type == .notAHost)
    var late = lists
    late.events?[0].answerBy = now.addingTimeInterval(-1)
    #expect(applying(.answer(.going, to: event), to: late) == late)
    var pending = lists
    pending.events?[0].myStatus = .pending
    #expect(applying(.answer(.going, to: event), to: pending) == pending)
    var small = lists
    small.events?[0].capacity = 2
    small.events?[0].maxPlusOnes = 2
    #expect(applying(.answer(.going, to: event, plusOnes: 2), to: small) == small)
    #expect(applying(.acceptRequest(ScriptedServer.id(99))) == lists)
  }

  @Test func `an accepted request makes a friend`() {
    let lists = applying(.acceptRequest(ScriptedServer.id(50)))
    #expect(lists.friendRequests == [])
    #expect(lists.friends == [Friend(user: cleo, since: now), Friend(user: ben, since: noon)])
  }

  @Test func `a declined request is gone`() {
    let lists = applying(.declineRequest(ScriptedServer.id(50)))
    #expect(lists.friendRequests == [] && lists.friends == self.lists.friends)
  }

  @Test func `a sent request is listed, and a cancelled one is not`() {
    let dev = Person(id: ScriptedServer.id(4), username: "dev", displayName: "Dev")
    let id: FriendRequest.ID = ScriptedServer.id(99)
    let sent = applying(.sendRequest(to: dev, id: id))
    #expect(sent.sentFriendRequests == [FriendRequest(id: id, sender: ana, receiver: dev, createdAt: now)])
    #expect(applying(.sendRequest(to: dev), to: sent) == sent)
    #expect(applying(.cancelRequest(id), to: sent).sentFriendRequests == [])
  }

  @Test func `a request to a user who has asked makes a friend, and one to a friend shows nothing`() {
    let lists = applying(.sendRequest(to: cleo))
    #expect(lists.friends?.map(\.user) == [cleo, ben])
    #expect(lists.friendRequests == [] && lists.sentFriendRequests == [])
    #expect(applying(.sendRequest(to: ben)) == self.lists)
  }

  @Test func `an ended friendship is gone`() {
    #expect(applying(.endFriendship(with: ben.id)).friends == [])
  }

  @Test func `a block hides everything of the other user`() {
    let blocked = applying(.block(ben))
    #expect(blocked.blocks == [Block(user: ben, since: now)])
    #expect(blocked.friends == [] && blocked.events == [] && blocked.invitations == [])
    #expect(blocked.notifications?.map(\.userId) == [cleo.id])
    #expect(applying(.block(cleo)).friendRequests == [])
    var asked = lists
    asked.sentFriendRequests = [request(51, from: ana, to: cleo)]
    #expect(applying(.block(cleo), to: asked).sentFriendRequests == [])
    #expect(applying(.unblock(ben.id), to: blocked).blocks == [])
  }

  @Test func `a new event stands in its place, as the creator sees it`() {
    let draft = EventDraft(
      title: "Quiz", note: "Bring pens.", startTime: noon.addingTimeInterval(5400), timeZone: .lisbon,
      location: Location(name: "Here"), capacity: 8, inviteeIds: [ben.id, ben.id, cleo.id])
    let id: Event.ID = ScriptedServer.id(99)
    let lists = applying(.createEvent(draft, id: id))
    #expect(lists.events?.map(\.title) == ["Event 1", "Quiz", "Event 2"])
    let event = lists.events?[1]
    #expect(event?.id == id && event?.creator == ana && event?.hosts == [ana])
    #expect(event?.myStatus == "creator" && event?.myRole == .creator && event?.status == .scheduled)
    #expect(event?.note == "Bring pens." && event?.capacity == 8 && event?.location?.name == "Here")
    #expect(event?.counts == Counts(invited: 2))
  }

  @Test func `an edit changes what it names, counts as a version, and moves the event`() {
    let id = ScriptedServer.event(1).id
    let edit = EventEdit(
      title: "Later", note: .set("New"), startTime: noon.addingTimeInterval(99_999), capacity: .set(3))
    let lists = applying(.editEvent(id, applying: edit), to: hosting)
    #expect(lists.events?.map(\.title) == ["Event 2", "Later"])
    let event = lists.events?[1]
    #expect(event?.note == "New" && event?.capacity == 3 && event?.version == 2 && event?.updatedAt == now)
    #expect(lists.invitations?[0].event.title == "Later")
    let cleared = applying(.editEvent(id, applying: EventEdit(note: .clear, capacity: .clear)), to: lists).events?[1]
    #expect(cleared?.note == nil && cleared?.capacity == nil && cleared?.version == 3)
    #expect(applying(.editEvent(id, applying: EventEdit(title: "Event 1")), to: hosting) == hosting)
  }

  /// A newer service knows more zones than the device.
  @Test func `new and edited events keep the name of a time zone that the device does not know`() {
    var draft = EventDraft(title: "Landing", startTime: noon)
    draft.timeZoneName = "Mars/Phobos"
    let id: Event.ID = ScriptedServer.id(99)
    let created = applying(.createEvent(draft, id: id)).events?.first { $0.id == id }
    #expect(created?.timeZoneName == "Mars/Phobos" && created?.timeZone == .gmt)
    var edit = EventEdit()
    edit.timeZoneName = "Mars/Deimos"
    let edited = applying(.editEvent(ScriptedServer.event(1).id, applying: edit), to: hosting).events?[0]
    #expect(edited?.timeZoneName == "Mars/Deimos" && edited?.version == 2)
  }

  @Test func `a cancelled event stays, and says so`() {
    let lists = applying(.cancelEvent(ScriptedServer.event(1).id), to: hosting)
    #expect(lists.events?.map(\.status) == [.cancelled, .scheduled])
    #expect(lists.invitations?[0].event.status == .cancelled)
  }

  @Test func `inviting and withdrawing show nothing`() {
    #expect(applying(.invite([ben.id], to: ScriptedServer.event(1).id)) == lists)
    #expect(applying(.withdraw(Guest.ID(ben.id), from: ScriptedServer.event(1).id)) == lists)
  }

  // MARK: Hosts

  private func guest(_ person: Person, _ status: GuestStatus, plusOnes: Int = 0) -> Guest {
    Guest(
      id: Guest.ID(person.id), user: person, name: person.displayName, status: status, plusOnes: plusOnes,
      answeredAt: noon)
  }

  /// Ana hosts the first event, for one person. Ben is going, and cleo waits.
  private func hosting(_ guests: [Guest], isCut: Bool = false) -> Lists {
    var lists = hosting
    lists.events?[0].capacity = 1
    lists.events?[0].creator = ana
    lists.events?[0].hosts = [ana, ben]
    lists.events?[0].counts = Counts()
    for guest in guests { lists.events?[0].counts?.add(guest.party.places, to: guest.status) }
    let event = ScriptedServer.event(1).id
    lists.surroundings = Surroundings(guests: [event: guests], cut: isCut ? [event] : [])
    return lists
  }

  private func statuses(_ lists: Lists) -> [GuestStatus] {
    lists.surroundings?.guests[ScriptedServer.event(1).id]?.map(\.status) ?? []
  }

  @Test func `an answer that a host sets moves the guest, the counts, and those who wait`() {
    let event = ScriptedServer.event(1).id
    let (going, waiting) = (guest(ben, .going), guest(cleo, .waitlisted))
    let lists = applying(.setAnswer(.declined, of: going, at: event), to: hosting([going, waiting]))
    #expect(statuses(lists) == [.declined, .going])
    #expect(lists.events?[0].counts == Counts(going: 1, declined: 1))
    // Of the first guests alone, no one can tell who moves up.
    let cut = applying(.setAnswer(.declined, of: going, at: event), to: hosting([going, waiting], isCut: true))
    #expect(statuses(cut) == [.declined, .waitlisted])
    // Without the guest list, no one can tell what changes.
    #expect(applying(.setAnswer(.declined, of: going, at: event), to: hosting) == hosting)
    #expect(applying(.setAnswer(.declined, of: going, at: event)) == self.lists)
  }

  @Test func `an approved guest is invited, and one who does not wait stays as they are`() {
    let event = ScriptedServer.event(1).id
    let pending = guest(cleo, .pending)
    let lists = applying(.approve(pending, at: event), to: hosting([pending]))
    #expect(statuses(lists) == [.invited] && lists.events?[0].counts == Counts(invited: 1))
    let declined = hosting([guest(cleo, .declined)])
    #expect(applying(.approve(pending, at: event), to: declined) == declined)
    #expect(hosting([guest(ben, .going)]).refusal(of: .approve(pending, at: event), at: now)?.type == .guestNotFound)
    #expect(hosting([guest(ben, .going)], isCut: true).refusal(of: .approve(pending, at: event), at: now) == nil)
  }

  @Test func `a removed host is gone, and one who leaves no longer sees the event`() {
    let event = ScriptedServer.event(1).id
    let lists = applying(.removeHost(ben.id, from: event), to: hosting([]))
    #expect(lists.events?[0].hosts == [ana] && lists.events?.count == 2)
    var helping = self.lists
    helping.events?[0].myRole = .host
    helping.events?[0].hosts = [ben, ana]
    helping.notifications?[0].eventId = event
    let left = applying(.removeHost(ana.id, from: event), to: helping)
    #expect(left.events?.map(\.id) == [ScriptedServer.event(2).id])
    #expect(left.notifications?.map(\.id) == [ScriptedServer.id(61)])
    // The creator stays.
    let own = hosting([])
    #expect(applying(.removeHost(ana.id, from: event), to: own) == own)
    #expect(applying(.removeHost(ben.id, from: event), to: helping) == helping)
  }

  @Test func `an offer and a report change no list`() {
    let own = hosting([])
    #expect(applying(.addHost(cleo.id, to: ScriptedServer.event(1).id), to: own) == own)
    #expect(applying(.report(.user(ben.id), reason: .spam)) == lists)
    #expect(lists.refusal(of: .report(.user(ana.id), reason: .spam), at: now)?.type == .invalidFields)
  }

  @Test func `read notifications are marked, and stay marked as before`() {
    let lists = applying(.markRead([ScriptedServer.id(60)]))
    #expect(lists.notifications?.map(\.readAt) == [now, nil])
    var read = self.lists
    read.notifications?[0].readAt = noon
    let all = Write.markAllRead(before: "s", shown: [ScriptedServer.id(60), ScriptedServer.id(61)])
    #expect(applying(all, to: read).notifications?.map(\.readAt) == [noon, now])
  }

  @Test func `notifications that arrive after "mark all" stay unread`() {
    var lists = lists
    Write.markAllRead(before: "s", shown: [ScriptedServer.id(60), ScriptedServer.id(61)]).apply(to: &lists, at: now)
    lists.notifications?.insert(notification(62, about: ben), at: 0)
    Write.markAllRead(before: "s", shown: [ScriptedServer.id(60), ScriptedServer.id(61)]).apply(to: &lists, at: now)
    #expect(lists.notifications?.map { $0.readAt == nil } == [true, false, false])
  }

  @Test func `an edit of the profile changes what it names`() {
    let profile = applying(.editProfile(ProfileEdit(username: "anna", displayName: "Anna", bio: .clear))).profile
    #expect(profile?.username == "anna" && profile?.displayName == "Anna" && profile?.bio == nil)
    #expect(applying(.editProfile(ProfileEdit(displayName: "Anna"))).profile?.bio == "Hi.")
    let reach = applying(.editProfile(ProfileEdit(requestsFrom: .noOne, findableBy: .friendsOfFriends))).profile
    #expect(reach?.requestsFrom == .noOne && reach?.findableBy == .friendsOfFriends)
    #expect(profile?.requestsFrom == .everyone)
  }

  @Test func `preferences change the named types`() {
    let lists = applying(.setPreferences(NotificationPreferences([.eventInvited: false])))
    #expect(lists.notificationPreferences?.choices == [.eventUpdated: true, .eventInvited: false])
  }
}
