@testable import App

/// The lists that a user sees, with one line per item that contains everything that a client can use. ``Model``
/// computes the expected lists, and ``Listing`` reads them from responses of the service.
extension Model {
  /// A collection of a user, and how to read it from a response.
  func list(of collection: App.Collection, for person: Int) -> (Listing, [String]) {
    switch collection {
    case .profile: (.profile, profile(of: person))
    case .friends: (.friends, friendList(of: person))
    case .friendRequests: (.requests, requestList(of: person, .incoming))
    case .sentFriendRequests: (.requests, requestList(of: person, .sent))
    case .events: (.events, eventList(of: person, archived: false))
    case .invitations: (.invitations, invitationList(of: person))
    case .blocks: (.blocks, blockList(of: person))
    case .notifications: (.inbox, inboxList(of: person))
    case .notificationPreferences: (.preferences, preferences(of: person))
    }
  }

  func profile(of person: Int) -> [String] {
    let person = people[person]
    return [line(person.id, person.username, person.displayName, person.bio, person.email)]
  }

  /// Newest first.
  func friendList(of person: Int) -> [String] {
    friendships.reversed().filter { $0.isOf(person) }.map { name($0.one == person ? $0.other : $0.one) }
  }

  /// Newest first.
  func requestList(of person: Int, _ direction: FriendRequest.Direction) -> [String] {
    requests.reversed().filter { request in
      request.status == "pending"
        && (direction == .sent
          ? request.sender == person
          : request.receiver == person && request.isFiltered == (direction == .filtered))
    }.map { line($0.id, name($0.sender), name($0.receiver), $0.status, "\($0.isFiltered)") }
  }

  func blockList(of person: Int) -> [String] {
    blocks.enumerated().filter { index, block in
      // A user who had blocked this person before is not shown.
      block.by == person && !blocks[..<index].contains(Block(by: block.of, of: person))
    }.map { name($0.element.of) }.sorted()
  }

  /// The live events by start, or the archived events by start, latest first.
  func eventList(of person: Int, archived: Bool) -> [String] {
    let shown = events.indices.filter { events[$0].isArchived == archived && canSee($0, person) }.sorted {
      (events[$0].plan.start, events[$0].id) < (events[$1].plan.start, events[$1].id)
    }
    return (archived ? shown.reversed() : shown).map { line(of: $0, for: person) }
  }

  /// The invitations to live events, newest first.
  func invitationList(of person: Int) -> [String] {
    invitations.reversed().filter { $0.guest == .user(person) && !events[$0.event].isArchived }.map {
      line(line(of: $0.event, for: person), $0.status)
    }
  }

  /// An event and its guests, by id. Nil if the person may not see it.
  func view(of event: Int, for person: Int) -> [String]? {
    guestList(of: event, for: person).map { [line(of: event, for: person)] + $0 }
  }

  func guestList(of event: Int, for person: Int) -> [String]? {
    guard canSee(event, person) else { return nil }
    let isPending = invitation(of: .user(person), to: event).map { invitations[$0].status == "pending" } ?? false
    let isHost = events[event].hosts.contains(person)
    let shown = invitations.filter { guest in
      guest.event == event && !isHidden(guest.guest, from: person)
        // Only hosts see guests who wait for approval, who see only themselves.
        && (guest.guest == .user(person) || !isPending && (isHost || guest.status != "pending"))
    }
    return shown.map { guest in
      let user = guest.guest.user.map(name)
      return line(id(of: guest.guest), user, name(of: guest.guest), guest.status, String(guest.plusOnes))
    }.sorted()
  }

  /// The queued notices, without an order.
  var queueLines: [String] {
    queue.map { Listing.notice($0.type, for: people[$0.recipient].id, members(of: $0)) }.sorted()
  }

  /// The first page of the inbox, newest first.
  func inboxList(of person: Int) -> [String] {
    shown(to: person).prefix(100).map { place in
      let notice = inbox[place]
      return Listing.notice(notice.type, for: notice.isRead ? "read" : "unread", members(of: notice))
    }
  }

  func preferences(of person: Int) -> [String] {
    Self.types.map { "\($0): \(!mutings.contains(Muting(by: person, type: $0)))" }
  }

  private func members(of notice: Notice) -> [String] {
    var members = notice.others
    if let event = notice.event { members.append("eventId=\(events[event].id)") }
    if let user = notice.user { members.append("userId=\(people[user].id)") }
    if let title = notice.title { members.append("title=\(title)") }
    if let actor = notice.actor { members.append("actor=\(actor)") }
    return members
  }

  private func line(of event: Int, for person: Int) -> String {
    let shown = events[event]
    let plan = shown.plan
    let hosts = shown.hosts.filter { !people[$0].isGone && !isHidden($0, from: person) }
    let creator = hosts.first == shown.creator ? name(shown.creator) : nil
    let invitation = invitation(of: .user(person), to: event).map { invitations[$0] }
    let mine = invitation?.status
    let role = shown.creator == person ? "creator" : "host"
    // The counts include hidden guests.
    let counts = Listing.states.map { state in
      String(invitations.filter { $0.event == event && $0.status == state }.map(\.places).reduce(0, +))
    }
    return line(
      shown.id, plan.title, plan.note, plan.start, plan.end, plan.location, plan.url, plan.capacity.map { String($0) },
      plan.answerBy, String(plan.maxPlusOnes), shown.status, creator,
      "hosts: \(hosts.map(name).joined(separator: ", "))", String(shown.version), mine == nil ? role : "guest",
      mine ?? role, String(invitation?.plusOnes ?? 0), counts.joined(separator: "+"))
  }

  private func name(_ person: Int) -> String {
    line(people[person].id, people[person].username, people[person].displayName)
  }

  private func line(_ parts: String?...) -> String { Listing.line(parts) }
}
