/// Co-hosts.
extension Model {
  mutating func addHost(_ user: Int, to event: Int, by person: Int) -> Set<Int> {
    if !canSee(event, person) { return [404] }
    if events[event].host != person { return [403] }
    if people[user].isGone || isHidden(user, from: person) { return [404] }
    if events[event].hosts.contains(user) { return [200] }
    if events[event].isClosed { return [409] }
    let isGuest = guests(of: event).contains(user)
    guard isGuest || areFriends(person, user) else { return [422] }
    clock += 1
    let hidden = guests(of: event).filter { isHidden($0, from: user) }
    for guest in hidden { forgetNotices(to: guest, about: event) }
    let leaving = hidden + (isGuest ? [user] : [])
    invitations.removeAll { $0.event == event && leaving.contains($0.guest) }
    if !leaving.isEmpty { promote(to: event, by: hidden.isEmpty ? person : nil) }
    events[event].coHosts.append(user)
    notify(notice("host-added", to: user, of: event, about: person), by: person)
    return [200]
  }

  mutating func removeHost(_ user: Int, from event: Int, by person: Int) -> Set<Int> {
    if !canSee(event, person) { return [404] }
    guard person == user ? events[event].hosts.contains(person) : events[event].host == person else { return [403] }
    if events[event].host == user { return [422] }
    guard events[event].coHosts.contains(user) else { return [204] }
    if events[event].isClosed { return [409] }
    clock += 1
    endRole(of: user, at: event)
    notify(notice("invitation-withdrawn", to: user, of: event), by: person)
    return [204]
  }

  /// A co-host who is none any more loses all notifications about the event, and their links.
  mutating func endRole(of user: Int, at event: Int) {
    events[event].coHosts.removeAll { $0 == user }
    forgetNotices(to: user, about: event)
    for index in links.indices where links[index].by == user && links[index].event == event { revoked.insert(index) }
  }

  mutating func forgetNotices(to user: Int, about event: Int) {
    queue.removeAll { $0.recipient == user && $0.event == event }
    inbox.removeAll { $0.recipient == user && $0.event == event }
  }

  /// Whether a block hides a user from a host of an event.
  func isHidden(_ user: Int, fromHostsOf event: Int) -> Bool {
    events[event].hosts.contains { isHidden($0, from: user) }
  }

  /// The longest-serving co-host becomes the creator of each event of an account that is about to be deleted. The roles
  /// of co-hosts whom a block hides from the new creator end.
  mutating func handOver(by person: Int) {
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
