import Foundation

/// The verbs of hosts besides the writes of an outbox. Each checks the rules first.
extension Lists {
  private static let maximumLinks = 20

  /// Offers a friend or a guest the role of a co-host. An offer changes nothing that its sender sees.
  func checkOffer(to user: User.ID, at id: Event.ID) throws(Problem) {
    let event = try ownEvent(id)
    try checkIsSeen(user)
    if event.hosts.contains(where: { $0.id == user }) { return }
    try checkIsOpen(event)
    let known = guests(of: id)
    let mayBeGuest = known.map { !$0.isWhole || $0.items.contains { $0.user?.id == user } } ?? true
    if !mayBeGuest && friends?.contains(where: { $0.id == user }) != true {
      throw .invalid("userId", .notAFriend, "is neither a friend nor a guest")
    }
  }

  func checkRemoving(host user: User.ID, from id: Event.ID) throws(Problem) {
    let isSelf = user == profile?.id
    let event = isSelf ? try hostedEvent(id) : try ownEvent(id)
    if isSelf && event.myRole == .creator || event.creator?.id == user {
      throw .invalid("userId", .notAllowed, "must not be the creator")
    }
    if event.hosts.contains(where: { $0.id == user }) { try checkIsOpen(event) }
  }

  mutating func removeHost(_ user: User.ID, from id: Event.ID) {
    guard let event = try? hostedEvent(id), event.creator?.id != user,
      event.hosts.contains(where: { $0.id == user })
    else { return }
    if user == profile?.id {
      // Without the role, the user is no longer part of the event.
      events?.removeAll { $0.id == id }
      notifications?.removeAll { $0.eventId == id }
    } else {
      changeEvent(id) { $0.hosts.removeAll { $0.id == user } }
    }
  }

  mutating func setAnswer(_ answer: Answer, of guest: Guest.ID, at id: Event.ID, _ time: Date) {
    guard let new = try? party(of: guest, after: answer, at: id, time), let guest = try? self.guest(guest, of: id),
      new != guest.party
    else { return }
    move(guest, to: new, at: id, time)
    promoteWaiting(at: id, after: guest.party, time)
  }

  /// The party that results from an answer that a host sets. Nil if the guest is not known.
  func party(
    of guest: Guest.ID, after answer: Answer, at id: Event.ID, _ time: Date
  ) throws(Problem) -> Party? {
    let event = try hostedEvent(id)
    let guest = try self.guest(guest, of: id)
    try checkIsOpen(event)
    guard let guest else { return nil }
    do {
      return try places(of: event, time).party(after: answer, from: guest.party, isSetByHost: true)
    } catch {
      throw error.problem
    }
  }

  mutating func approve(_ guest: Guest.ID, at id: Event.ID, _ time: Date) {
    guard let new = try? party(ofApproved: guest, at: id, time), let guest = try? self.guest(guest, of: id) else {
      return
    }
    move(guest, to: new, at: id, time)
  }

  /// The party of a guest whom a host approves. Nil if the guest does not wait for that, or is not known.
  func party(ofApproved guest: Guest.ID, at id: Event.ID, _ time: Date) throws(Problem) -> Party? {
    let event = try hostedEvent(id)
    guard let guest = try self.guest(guest, of: id), guest.status == .pending else { return nil }
    try checkIsOpen(event)
    if event.end <= time { throw .refused(.eventArchived, 409, "The event is over and can no longer change.") }
    if guest.user != nil { return Party(status: .invited, plusOnes: guest.plusOnes) }
    do {
      // No list says which answer a visitor wants. Most who ask want to come.
      return try places(of: event, time).party(after: .going, admitting: guest.party)
    } catch {
      throw error.problem
    }
  }

  /// The guests who are reminded to answer.
  func reminded(of id: Event.ID, at time: Date) throws(Problem) -> [Guest.ID] {
    let event = try hostedEvent(id)
    try checkIsOpen(event)
    if event.startTime <= time || event.answerBy.map({ $0 < time }) == true {
      throw Places.Refusal.answersClosed.problem
    }
    return (surroundings?.guests[id] ?? []).filter { $0.status == .invited && $0.user != nil }.map(\.id)
  }

  mutating func duplicate(_ id: Event.ID, _ copy: EventCopy, as newID: Event.ID, _ time: Date) throws(Problem) {
    let event = try hostedEvent(id)
    let shift = copy.startTime.timeIntervalSince(event.startTime)
    let end = copy.endTime.applied(to: event.endTime?.addingTimeInterval(shift))
    try checkTimes(copy.startTime, end, nil)
    let guests = (surroundings?.guests[id] ?? []).compactMap(\.user?.id)
    let answerBy = event.answerBy?.addingTimeInterval(shift)
    var new = event
    (new.id, new.startTime, new.endTime) = (newID, copy.startTime, end)
    new.answerBy = answerBy.flatMap { $0 > time ? $0 : nil }
    (new.status, new.version, new.createdAt, new.updatedAt) = (.scheduled, 1, time, time)
    (new.myRole, new.myStatus, new.myPlusOnes, new.participants) = (.creator, "creator", 0, nil)
    let friends = (friends ?? []).map(\.id).filter { guests.contains($0) }
    add(new, inviting: copy.invite == true ? friends : [])
  }

  /// Nil if only other guests are known.
  private func guest(_ guest: Guest.ID, of id: Event.ID) throws(Problem) -> Guest? {
    guard let (guests, isWhole) = guests(of: id) else { return nil }
    let found = guests.first { $0.id == guest }
    if found == nil, isWhole { throw .missing(.guestNotFound) }
    return found
  }

  // MARK: Reports

  func check(_ subject: Report.Subject) throws(Problem) {
    switch subject {
    case .user(let user):
      if user == profile?.id { throw .invalid("userId", .notAllowed, "must be another user") }
    case .event(let id):
      let me = profile?.id
      if try event(id).creator.map({ $0.id == me }) == true {
        throw .invalid("eventId", .notAllowed, "must be an event of another user")
      }
    case .guest(let id):
      // An event may hide its guests from the user, or have more of them than the first.
      guard let surroundings, surroundings.cut.isEmpty else { return }
      let isVisitor = surroundings.guests.values.joined().contains { $0.id == id && $0.user == nil }
      if !isVisitor { throw .missing(.guestNotFound) }
    }
  }

  // MARK: Links

  /// The links of an event that the user hosts.
  func links(of id: Event.ID) throws(Problem) -> [ShareLink] {
    _ = try hostedEvent(id)
    return surroundings?.links[id] ?? []
  }

  func link(_ link: ShareLink.ID, of id: Event.ID) throws(Problem) -> ShareLink {
    guard let found = try links(of: id).first(where: { $0.id == link }) else { throw .missing(.linkNotFound) }
    return found
  }

  mutating func createLink(
    _ draft: ShareLinkDraft, id: ShareLink.ID, url: URL, at event: Event.ID, _ time: Date
  ) throws(Problem) -> ShareLink {
    try Self.check(draft.expiresAt, time)
    try checkIsOpen(try hostedEvent(event))
    // Expired links make room for new ones.
    let known = try links(of: event)
    let open = known.count < Self.maximumLinks ? known : known.filter { $0.expiresAt.map { $0 > time } ?? true }
    guard open.count < Self.maximumLinks else {
      throw .refused(.tooManyLinks, 409, "An event has at most \(Self.maximumLinks) links.")
    }
    var link = ShareLink(
      id: id, url: url, kind: draft.kind, shows: .counts, email: .optional, approval: true, createdAt: time)
    link.apply(draft)
    surroundings?.links[event] = open + [link]
    return link
  }

  mutating func editLink(
    _ id: ShareLink.ID, of event: Event.ID, _ edit: ShareLinkEdit, _ time: Date
  ) throws(Problem) -> ShareLink {
    if case .set(let end) = edit.expiresAt { try Self.check(end, time) }
    let hosted = try hostedEvent(event)
    var link = try link(id, of: event)
    try checkIsOpen(hosted)
    link.apply(edit)
    let links = try links(of: event).map { $0.id == id ? link : $0 }
    surroundings?.links[event] = links
    return link
  }

  /// Revokes a link. No list says who came through it, so all visitors leave if its visitors shall.
  mutating func revokeLink(
    _ id: ShareLink.ID, of event: Event.ID, removingVisitors: Bool, _ time: Date
  ) throws(Problem) {
    let hosted = try hostedEvent(event)
    if removingVisitors { try checkIsOpen(hosted) }
    surroundings?.links[event]?.removeAll { $0.id == id }
    guard removingVisitors else { return }
    leave((surroundings?.guests[event] ?? []).filter { $0.user == nil }, from: event, at: time)
  }

  /// The event behind a link. A preview knows the links of hosted events only, and a host is no guest.
  func checkJoining(by token: String) throws(Problem) {
    let known = surroundings?.links.values.joined().contains { $0.url?.lastPathComponent == token }
    guard known == true else { throw .missing(.linkNotFound) }
    throw .refused(.ownEvent, 409, "You are a host of this event, not a guest.")
  }

  private static func check(_ expiry: Date?, _ time: Date) throws(Problem) {
    if let expiry, expiry <= time { throw .invalid("expiresAt", .outOfRange, "must be in the future") }
  }
}
