import Foundation

/// The verbs of hosts and co-hosts.
extension Model {
  /// The rules of the guest's own answers apply, except for the deadline.
  mutating func setAnswer(_ status: String, of guest: Int, to event: Int, by person: Int) -> Set<Int> {
    if !canSee(event, person) { return [404] }
    if !events[event].hosts.contains(person) { return [403] }
    guard let index = invitation(of: guest, to: event), !isHidden(guest, from: person) else { return [404] }
    let isVisitor = guest >= Self.firstVisitor
    if events[event].isClosed || isVisitor && events[event].plan.isOver { return [409] }
    let old = invitations[index]
    if old.status == "pending" { return [409] }
    if isVisitor, visitors[guest - Self.firstVisitor].isProposed { return [409] }
    var new: Invitation
    let most = isVisitor ? maxPlusOnes(of: guest) : events[event].plan.maxPlusOnes
    switch decide(status, plusOnes: nil, atMost: most, from: old) {
    case .refused(let code): return [code]
    case .becomes(let group): new = group
    }
    if new.status == old.status, new.plusOnes == old.plusOnes { return [200] }
    replace(index, by: &new)
    if isVisitor {
      tellOfAnswer(new, by: person)
    } else {
      notifyHosts(of: new, by: person)
      let others = ["status=\(new.status)"]
      notify(notice("answer-set", to: guest, of: event, about: person, others: others), by: person)
    }
    promote(to: event, by: person)
    return [200]
  }

  /// Once for each guest, because the model knows no days.
  ///
  /// - Returns: the right statuses, and the number of guests who are reminded.
  mutating func remind(of event: Int, by person: Int) -> (right: Set<Int>, reminded: Int) {
    if let refusal = refusal(of: event, to: person) { return (refusal, 0) }
    if events[event].plan.isOver || events[event].plan.isPastAnswers { return ([409], 0) }
    let due = invitations.indices.filter { index in
      let guest = invitations[index]
      return guest.event == event && guest.status == "invited" && !guest.isReminded
        && !isHidden(guest.guest, from: person)
    }
    for index in due {
      invitations[index].isReminded = true
      notify(notice("answer-reminder", to: invitations[index].guest, of: event, about: person), by: person)
    }
    return ([200], due.count)
  }

  /// - Parameters:
  ///   - id: of the copy.
  ///   - end: nil keeps the duration.
  mutating func duplicate(
    _ event: Int, as id: String, start: String, end: String??, inviting: Bool, by person: Int
  ) -> Set<Int> {
    if !canSee(event, person) { return [404] }
    if !events[event].hosts.contains(person) { return [403] }
    let old = events[event].plan
    var plan = old
    plan.start = start
    plan.end = end ?? old.end.flatMap { Self.moved($0, from: old.start, to: start) }
    if let end = plan.end, end <= plan.start { return [422] }
    plan.answerBy = old.answerBy.flatMap { Self.moved($0, from: old.start, to: start) }
    if plan.isPastAnswers { plan.answerBy = nil }
    return create(id, plan, by: person, inviting: inviting ? guests(of: event).filter { areFriends(person, $0) } : [])
  }

  /// A time that keeps its distance from the start.
  private static func moved(_ time: String, from old: String, to new: String) -> String? {
    let dates = [time, old, new].compactMap { try? Date($0, strategy: .iso8601) }
    guard dates.count == 3 else { return nil }
    return dates[0].addingTimeInterval(dates[2].timeIntervalSince(dates[1])).formatted(.iso8601)
  }

  /// - Parameter id: the id of the offer, if there is one.
  mutating func offerHost(_ id: String, to user: Int, of event: Int, by person: Int) -> Set<Int> {
    if !canSee(event, person) { return [404] }
    if events[event].host != person { return [403] }
    if people[user].isGone || isHidden(user, from: person) { return [404] }
    if events[event].hosts.contains(user) { return [200] }
    if events[event].isClosed { return [409] }
    guard guests(of: event).contains(user) || areFriends(person, user) else { return [422] }
    if offers.contains(where: { $0.event == event && $0.user == user }) { return [200] }
    offers.append(Offer(id: id, event: event, user: user))
    notify(notice("host-offered", to: user, of: event, about: person, others: ["proposalId=\(id)"]), by: person)
    return [200]
  }

  mutating func acceptHost(_ offer: Offer, by person: Int) -> Set<Int> {
    guard person == offer.user, offers.contains(where: { $0.id == offer.id }) else { return [404] }
    let event = offer.event
    if events[event].isClosed { return [409] }
    guard guests(of: event).contains(person) || areFriends(events[event].host, person) else { return [404] }
    clock += 1
    let visits = visitors.indices.filter { visitor in
      visitors[visitor].isProposed
        && visitors[visitor].account.map { $0 == person || isHidden($0, from: person) } ?? false
        && invitation(ofVisitor: visitor).map { invitations[$0].event == event } ?? false
    }.map { Self.firstVisitor + $0 }
    for guest in visits { forgetNotices(about: guest) }
    invitations.removeAll { visits.contains($0.guest) }
    let hidden = guests(of: event).filter { isHidden($0, from: person) }
    for guest in hidden { forgetNotices(to: guest, about: event) }
    let leaving = hidden + (guests(of: event).contains(person) ? [person] : [])
    let frees = invitations.contains {
      $0.event == event && leaving.contains($0.guest) && ["going", "waitlisted"].contains($0.status)
    }
    invitations.removeAll { $0.event == event && leaving.contains($0.guest) }
    endOffers(to: hidden, of: event)
    if frees { promote(to: event, by: hidden.isEmpty ? person : nil) }
    if !visits.isEmpty { promote(to: event, by: person) }
    endOffers { $0.id == offer.id }
    events[event].removed.remove(person)
    for host in events[event].hosts where !isHidden(host, from: person) {
      notify(notice("host-added", to: host, of: event, about: person), by: person)
    }
    events[event].coHosts.append(person)
    return [200]
  }

  mutating func declineHost(_ offer: Offer, by person: Int) -> Set<Int> {
    guard person == offer.user, offers.contains(where: { $0.id == offer.id }) else { return [404] }
    endOffers { $0.id == offer.id }
    return [204]
  }

  /// Ends the offers of users who can no longer accept them.
  mutating func endOffers(to users: [Int], of event: Int) {
    let host = events[event].host
    let gone = users.filter { !guests(of: event).contains($0) && !areFriends(host, $0) }
    endOffers { $0.event == event && gone.contains($0.user) }
  }

  mutating func endOffers(where isEnded: (Offer) -> Bool) {
    for offer in offers where isEnded(offer) {
      forgetNotices(to: offer.user, about: offer.event, ofType: "host-offered")
    }
    offers.removeAll(where: isEnded)
  }

  /// No one decides any more about what is proposed at an event that has ended.
  mutating func forgetProposals(at event: Int) {
    for offer in offers where offer.event == event {
      forgetNotices(to: offer.user, about: event, ofType: "host-offered")
    }
    for visitor in visitors.indices where visitors[visitor].isProposed {
      guard let index = invitation(ofVisitor: visitor), invitations[index].event == event,
        let account = visitors[visitor].account
      else { continue }
      forgetNotices(to: account, about: event, ofType: "answer-proposed")
    }
  }

  mutating func removeHost(_ user: Int, from event: Int, by person: Int) -> Set<Int> {
    if !canSee(event, person) { return [404] }
    guard person == user ? events[event].hosts.contains(person) : events[event].host == person else { return [403] }
    if events[event].host == user { return [422] }
    endOffers { $0.event == event && $0.user == user }
    guard events[event].coHosts.contains(user) else { return [204] }
    if events[event].isClosed { return [409] }
    clock += 1
    let wasRemoved = events[event].removed
    endRole(of: user, at: event)
    if person == user { events[event].removed = wasRemoved }
    notify(notice("invitation-withdrawn", to: user, of: event), by: person)
    return [204]
  }

  /// A user who is no longer a co-host loses all notifications about the event, and their links.
  mutating func endRole(of user: Int, at event: Int) {
    events[event].coHosts.removeAll { $0 == user }
    events[event].removed.insert(user)
    forgetNotices(to: user, about: event)
    for index in links.indices where links[index].by == user && links[index].event == event { revoked.insert(index) }
  }

  /// - Parameter type: nil for all.
  mutating func forgetNotices(to user: Int, about event: Int, ofType type: String? = nil) {
    let isOne = { (notice: Notice) in
      notice.recipient == user && notice.event == event && type.map { $0 == notice.type } ?? true
    }
    queue.removeAll(where: isOne)
    inbox.removeAll(where: isOne)
  }

  /// Whether a block hides a user from a host of an event.
  func isHidden(_ user: Int, fromHostsOf event: Int) -> Bool {
    events[event].hosts.contains { isHidden($0, from: user) }
  }

  /// The longest-serving co-host becomes the creator of each event of an account that is about to be deleted. The roles
  /// of co-hosts whom a block hides from the new creator end.
  mutating func handOver(by person: Int) {
    let hosted = events.indices.filter { events[$0].host == person }
    offers.removeAll { $0.user == person || hosted.contains($0.event) }
    for event in events.indices {
      events[event].coHosts.removeAll { $0 == person }
      if events[event].host == person, !events[event].coHosts.isEmpty {
        events[event].host = events[event].coHosts.removeFirst()
      }
      guard !events[event].isArchived else { continue }
      for coHost in events[event].coHosts where isHidden(coHost, from: events[event].host) {
        endRole(of: coHost, at: event)
      }
    }
  }
}
