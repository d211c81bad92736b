/// Offers to host an event, and the role of a co-host.
extension Model {
  /// - Parameter id: the id of the offer, if there is one.
  mutating func offerHost(_ id: String, to user: Int, of event: Int, by person: Int) -> Set<Int> {
    if !canSee(event, person) { return [404] }
    if events[event].creator != person { return [403] }
    if people[user].isGone || isHidden(user, from: person) { return [404] }
    if events[event].hosts.contains(user) { return [200] }
    if events[event].isClosed { return [409] }
    if !mayHost(user, event) { return [422] }
    if offers.contains(where: { $0.event == event && $0.user == user }) { return [200] }
    offers.append(Offer(id: id, event: event, user: user))
    let notice = notice("host-offered", to: user, of: event, about: person, ["proposalId=\(id)"])
    notify(notice, by: .user(person))
    return [200]
  }

  mutating func acceptHost(_ offer: Offer, by person: Int) -> Set<Int> {
    let event = offer.event
    if !isOpen(offer, to: person) { return [404] }
    if events[event].isClosed { return [409] }
    if !mayHost(person, event) { return [404] }
    clock += 1
    makeWay(for: person, at: event)
    endOffers { $0.id == offer.id }
    events[event].removed.remove(person)
    for host in events[event].hosts where !isHidden(host, from: person) {
      notify(notice("host-added", to: host, of: event, about: person), by: .user(person))
    }
    events[event].coHosts.append(person)
    return [200]
  }

  mutating func declineHost(_ offer: Offer, by person: Int) -> Set<Int> {
    if !isOpen(offer, to: person) { return [404] }
    endOffers { $0.id == offer.id }
    return [204]
  }

  mutating func removeHost(_ user: Int, from event: Int, by person: Int) -> Set<Int> {
    if !canSee(event, person) { return [404] }
    let isRightful = person == user ? events[event].hosts.contains(person) : events[event].creator == person
    if !isRightful { return [403] }
    if events[event].creator == user { return [422] }
    endOffers { $0.event == event && $0.user == user }
    if !events[event].coHosts.contains(user) { return [204] }
    if events[event].isClosed { return [409] }
    clock += 1
    let formerlyRemoved = events[event].removed
    endRole(of: user, at: event)
    if person == user { events[event].removed = formerlyRemoved }
    notify(notice("invitation-withdrawn", to: user, of: event), by: .user(person))
    return [204]
  }

  // MARK: Roles

  private func mayHost(_ user: Int, _ event: Int) -> Bool {
    invitees(of: event).contains(user) || areFriends(events[event].creator, user)
  }

  /// A new host leaves the guest list, with all answers that wait for them, and so do those whom a block hides from
  /// them.
  private mutating func makeWay(for host: Int, at event: Int) {
    let visits = proposedVisitors(at: event).filter { visitor in
      visitors[visitor].account.map { $0 == host || isHidden($0, from: host) } ?? false
    }
    for visitor in visits { forgetNotices(about: visitor) }
    invitations.removeAll { $0.guest.visitor.map(visits.contains) ?? false }
    let hidden = invitees(of: event).filter { isHidden($0, from: host) }
    for guest in hidden { forgetNotices(to: guest, about: event) }
    let leaving = invitations.filter { party in
      party.event == event && party.guest.user.map { $0 == host || hidden.contains($0) } ?? false
    }
    invitations.removeAll { party in party.event == event && leaving.contains { $0.guest == party.guest } }
    endOffers(to: hidden, of: event)
    if leaving.contains(where: { ["going", "waitlisted"].contains($0.status) }) {
      promote(at: event, by: hidden.isEmpty ? .user(host) : .block)
    }
    if !visits.isEmpty { promote(at: event, by: .user(host)) }
  }

  /// A user who is no longer a co-host loses all notifications about the event, and their links.
  mutating func endRole(of user: Int, at event: Int) {
    events[event].coHosts.removeAll { $0 == user }
    events[event].removed.insert(user)
    forgetNotices(to: user, about: event)
    for index in links.indices where links[index].by == user && links[index].event == event { revoked.insert(index) }
  }

  // MARK: Offers

  private func isOpen(_ offer: Offer, to person: Int) -> Bool {
    person == offer.user && offers.contains { $0.id == offer.id }
  }

  /// Ends the offers of users who can no longer accept them.
  mutating func endOffers(to users: [Int], of event: Int) {
    let gone = users.filter { !mayHost($0, event) }
    endOffers { $0.event == event && gone.contains($0.user) }
  }

  mutating func endOffers(where isEnded: (Offer) -> Bool) {
    for offer in offers where isEnded(offer) {
      forgetNotices(to: offer.user, about: offer.event, ofType: "host-offered")
    }
    offers.removeAll(where: isEnded)
  }
}
