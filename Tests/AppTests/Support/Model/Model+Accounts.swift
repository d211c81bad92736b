/// Profiles, verified addresses, and the end of an account.
extension Model {
  mutating func register(_ person: Person) {
    people.append(person)
  }

  mutating func edit(_ person: Int, username: String?, displayName: String?, bio: String??) {
    if let username { people[person].username = username }
    if let displayName { people[person].displayName = displayName }
    if let bio { people[person].bio = bio }
  }

  /// Requests that were filtered are announced, and visitors with the address belong to the account.
  mutating func verify(_ person: Int) -> Set<Int> {
    people[person].isVerified = true
    for index in requests.indices where requests[index].sender == person && requests[index].isFiltered {
      requests[index].isFiltered = false
      if requests[index].status == "pending" { notifyOfRequest(index) }
    }
    claimVisits(of: person)
    return [204]
  }

  mutating func deleteAccount(of person: Int) {
    clock += 1
    forgetNotices { $0.recipient == person || $0.user == person }
    mutings.removeAll { $0.by == person }
    handOver(by: person)
    for event in events.indices where events[event].creator == person {
      if !events[event].isPast { callOff(event, by: person) }
      forgetDetails(of: event)
    }
    people[person].isGone = true
    friendships.removeAll { $0.isOf(person) }
    blocks.removeAll { $0.by == person || $0.of == person }
    for index in requests.indices where requests[index].status == "pending" {
      if [requests[index].sender, requests[index].receiver].contains(person) { requests[index].status = "ended" }
    }
    for index in links.indices where links[index].by == person { revoked.insert(index) }
    leaveAll(person)
  }

  /// The longest-serving co-host becomes the creator of each event of an account that is about to be deleted. The roles
  /// of co-hosts whom a block hides from the new creator end.
  private mutating func handOver(by person: Int) {
    let created = events.indices.filter { events[$0].creator == person }
    offers.removeAll { $0.user == person || created.contains($0.event) }
    for event in events.indices {
      events[event].coHosts.removeAll { $0 == person }
      if events[event].creator == person, !events[event].coHosts.isEmpty {
        events[event].creator = events[event].coHosts.removeFirst()
      }
      guard !events[event].isArchived else { continue }
      for coHost in events[event].coHosts where isHidden(coHost, from: events[event].creator) {
        endRole(of: coHost, at: event)
      }
    }
  }

  /// Erases the note, the place and the web address of an event without a host, also in notices.
  private mutating func forgetDetails(of event: Int) {
    (events[event].plan.note, events[event].plan.location, events[event].plan.url) = (nil, nil, nil)
    for index in queue.indices where queue[index].event == event { queue[index].forgetDetails() }
    for index in inbox.indices where inbox[index].event == event { inbox[index].forgetDetails() }
  }

  /// A user leaves all guest lists, with the visitors who belong to the account.
  private mutating func leaveAll(_ person: Int) {
    let visits = visitors.indices.filter { visitors[$0].account == person && invitation(ofVisitor: $0) != nil }
    let visited = visits.compactMap { invitation(ofVisitor: $0).map { invitations[$0].event } }
    invitations.removeAll { $0.guest.visitor.map(visits.contains) ?? false }
    for event in events.indices where invitees(of: event).contains(person) {
      remove(.user(person), from: event, by: .user(person))
    }
    for event in events.indices where visited.contains(event) { promote(at: event, by: .user(person)) }
    for visitor in visits { forgetNotices(about: visitor) }
  }
}
