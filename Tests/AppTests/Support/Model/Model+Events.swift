import Foundation

/// The verbs on events and guest lists.
extension Model {
  /// - Parameter id: the id of the event, if one is created.
  mutating func create(_ id: String, _ plan: Plan, by creator: Int, inviting guests: [Int]) -> Set<Int> {
    if guests.contains(where: { !areFriends(creator, $0) }) { return [422] }
    clock += 1
    events.append(Event(id: id, creator: creator, plan: plan))
    add(guests, to: events.count - 1, by: creator)
    return [201]
  }

  /// - Parameter version: the version in `If-Match`.
  mutating func edit(_ event: Int, by person: Int, to new: Plan, ifVersion version: Int?) -> Set<Int> {
    if let refusal = refusal(of: event, to: person) { return refusal }
    let changes = zip(events[event].plan.fields, new.fields).filter { $0.value != $1.value }.map { old, new in
      "\(new.name) from \(old.value ?? "-") to \(new.value ?? "-")"
    }
    if changes.isEmpty { return [200] }
    if let version, version != events[event].version { return [412] }
    if let end = new.end, end <= new.start { return [422] }
    clock += 1
    events[event].plan = new
    events[event].version += 1
    notifyAll(at: event, "event-updated", ["changes=" + changes.sorted().joined(separator: ", ")], by: person)
    promote(at: event, by: .user(person))
    return [200]
  }

  /// Only the creator cancels.
  mutating func cancelEvent(_ event: Int, by person: Int) -> Set<Int> {
    if !canSee(event, person) { return [404] }
    if events[event].creator != person { return events[event].isClosed ? [403, 409] : [403] }
    if events[event].status == "cancelled" { return Self.done.union([409]) }
    if events[event].isArchived { return [409] }
    callOff(event, by: person)
    return Self.done
  }

  mutating func callOff(_ event: Int, by creator: Int) {
    events[event].status = "cancelled"
    events[event].version += 1
    notifyAll(at: event, "event-cancelled", by: creator)
    forgetProposals(at: event)
  }

  /// Archives all events that are over.
  mutating func archive() {
    for event in events.indices where events[event].plan.isOver && !events[event].isArchived {
      events[event].isArchived = true
      for visitor in proposedVisitors(at: event) {
        invitations.removeAll { $0.guest == .visitor(visitor) }
        forgetNotices(about: visitor)
      }
      forgetProposals(at: event)
    }
  }

  /// - Parameters:
  ///   - id: of the copy.
  ///   - end: nil keeps the duration.
  mutating func duplicate(
    _ event: Int, as id: String, start: String, end: String??, inviting: Bool, by person: Int
  ) -> Set<Int> {
    if let refusal = refusal(ofRoleAt: event, to: person) { return refusal }
    let old = events[event].plan
    var plan = old
    plan.start = start
    plan.end = end ?? old.end.flatMap { Self.moved($0, from: old.start, to: start) }
    if let end = plan.end, end <= plan.start { return [422] }
    plan.answerBy = old.answerBy.flatMap { Self.moved($0, from: old.start, to: start) }
    if plan.isPastAnswers { plan.answerBy = nil }
    return create(id, plan, by: person, inviting: inviting ? invitees(of: event).filter { areFriends(person, $0) } : [])
  }

  /// A time that keeps its distance from the start.
  private static func moved(_ time: String, from old: String, to new: String) -> String? {
    let dates = [time, old, new].compactMap { try? Date($0, strategy: .iso8601) }
    guard dates.count == 3 else { return nil }
    return dates[0].addingTimeInterval(dates[2].timeIntervalSince(dates[1])).formatted(.iso8601)
  }

  // MARK: Guests

  mutating func invite(_ guests: [Int], to event: Int, by person: Int) -> Set<Int> {
    let areAllFriends = guests.allSatisfy { areFriends(person, $0) }
    if let refusal = refusal(of: event, to: person) { return areAllFriends ? refusal : refusal.union([422]) }
    guard areAllFriends, !guests.contains(where: { isHidden($0, fromHostsOf: event) }) else { return [422] }
    clock += 1
    events[event].removed.subtract(guests)
    add(guests, to: event, by: person)
    return [200, 201]
  }

  private mutating func add(_ guests: [Int], to event: Int, by host: Int) {
    for guest in guests where invitation(of: .user(guest), to: event) == nil && !events[event].hosts.contains(guest) {
      invitations.append(Invitation(event: event, guest: .user(guest)))
      notify(notice("event-invited", to: guest, of: event, about: host), by: .user(host))
    }
  }

  /// A guest who has declined is not notified.
  mutating func withdraw(_ guest: Guest, from event: Int, by person: Int) -> Set<Int> {
    let status = invitation(of: guest, to: event).map { invitations[$0].status }
    if let refusal = refusal(of: event, to: person) {
      return status == nil ? refusal.union(Self.doneOrMissing) : refusal
    }
    guard let status else { return Self.doneOrMissing }
    clock += 1
    let visits = proposedVisitors(at: event).filter { guest == visitors[$0].account.map(Guest.user) }
    for visit in visits { forgetNotices(about: visit) }
    invitations.removeAll { $0.guest.visitor.map(visits.contains) ?? false }
    remove(guest, from: event, by: .user(person))
    if !visits.isEmpty { promote(at: event, by: .user(person)) }
    switch guest {
    case .visitor(let visitor): forgetNotices(about: visitor)
    case .user(let user):
      forgetNotices(to: user, about: event)
      offers.removeAll { $0.event == event && $0.user == user }
      if status != "declined" { notify(notice("invitation-withdrawn", to: user, of: event), by: .user(person)) }
    }
    return Self.done
  }

  /// A guest leaves the list, and others may move up.
  mutating func remove(_ guest: Guest, from event: Int, by actor: Actor) {
    invitations.removeAll { $0.event == event && $0.guest == guest }
    promote(at: event, by: actor)
  }

  /// Once for each guest, because the model knows no days.
  ///
  /// - Returns: the right statuses, and the number of guests who are reminded.
  mutating func remind(of event: Int, by person: Int) -> (right: Set<Int>, reminded: Int) {
    if let refusal = refusal(of: event, to: person) { return (refusal, 0) }
    if !events[event].takesAnswers { return ([409], 0) }
    var reminded = 0
    for index in invitations.indices where invitations[index].event == event {
      let invitation = invitations[index]
      guard invitation.status == "invited", !invitation.isReminded, let guest = invitation.guest.user,
        !isHidden(guest, from: person)
      else { continue }
      invitations[index].isReminded = true
      notify(notice("answer-reminder", to: guest, of: event, about: person), by: .user(person))
      reminded += 1
    }
    return ([200], reminded)
  }
}
