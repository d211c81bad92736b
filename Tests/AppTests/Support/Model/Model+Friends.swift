/// The relation of two users: requests, friendship and blocks. It has no other model.
extension Model {
  /// - Parameter id: the id of the request, if one is created.
  mutating func send(_ id: String, from sender: Int, to receiver: Int) -> Int {
    if sender == receiver { return 422 }
    if people[receiver].isGone || isHidden(receiver, from: sender) { return 404 }
    if areFriends(sender, receiver) { return 409 }
    if let pending = pending(between: sender, and: receiver) {
      if requests[pending].sender == receiver { meet(pending) }
      return 200
    }
    let isFiltered = !people[sender].isVerified
    requests.append(Request(id: id, sender: sender, receiver: receiver, isFiltered: isFiltered))
    if !isFiltered { notifyOfRequest(requests.count - 1) }
    return 201
  }

  mutating func accept(_ request: Int, by person: Int) -> Int {
    let (sender, receiver) = (requests[request].sender, requests[request].receiver)
    if let unchanged = close(request, as: "accepted", by: person, of: receiver) { return unchanged }
    friendships.append(Friendship(one: sender, other: receiver))
    notify(notice("friend-accepted", to: sender, about: receiver), by: .user(receiver))
    return 200
  }

  mutating func decline(_ request: Int, by person: Int) -> Int {
    close(request, as: "declined", by: person, of: requests[request].receiver) ?? 200
  }

  /// The notice of a cancelled request is removed, whether it is delivered or not.
  mutating func cancel(_ request: Int, by person: Int) -> Int {
    if let unchanged = close(request, as: "cancelled", by: person, of: requests[request].sender) { return unchanged }
    let named = "requestId=\(requests[request].id)"
    forgetNotices { $0.others == [named] }
    return 200
  }

  mutating func unfriend(_ other: Int, by person: Int) -> Int {
    if people[other].isGone || isHidden(other, from: person) { return 404 }
    guard areFriends(person, other) else { return 204 }
    friendships.removeAll { $0.isBetween(person, other) }
    // Offers to guests stay.
    let (events, invitees) = (events, events.indices.map { self.invitees(of: $0) })
    for (one, two) in [(person, other), (other, person)] {
      endOffers { $0.user == one && events[$0.event].creator == two && !invitees[$0.event].contains(one) }
    }
    return 204
  }

  /// A second block, or one in the opposite direction, changes nothing else.
  mutating func block(_ other: Int, by person: Int) -> Int {
    if people[other].isGone || blocks.contains(Block(by: person, of: other)) { return 204 }
    let wasHidden = isHidden(other, from: person)
    blocks.append(Block(by: person, of: other))
    if !wasHidden { part(person, from: other) }
    return 204
  }

  mutating func unblock(_ other: Int, by person: Int) -> Int {
    blocks.removeAll { $0 == Block(by: person, of: other) }
    return 204
  }

  // MARK: Requests

  func pending(between one: Int, and other: Int) -> Int? {
    requests.firstIndex { $0.status == "pending" && $0.isBetween(one, other) }
  }

  /// - Parameter rightful: who may close it in this way.
  /// - Returns: nil if the request is now closed; otherwise the status of the response.
  private mutating func close(_ request: Int, as status: String, by person: Int, of rightful: Int) -> Int? {
    let (sender, receiver) = (requests[request].sender, requests[request].receiver)
    if person != rightful || people[sender].isGone || people[receiver].isGone { return 404 }
    if isHidden(sender, from: receiver) { return 404 }
    if requests[request].status == status { return 200 }
    if requests[request].status != "pending" { return 409 }
    requests[request].status = status
    return nil
  }

  /// The receiver has also sent a request.
  private mutating func meet(_ request: Int) {
    let (sender, receiver) = (requests[request].sender, requests[request].receiver)
    requests[request].status = "accepted"
    friendships.append(Friendship(one: sender, other: receiver))
    notify(notice("friend-accepted", to: receiver, about: sender), by: .user(sender))
    notify(notice("friend-accepted", to: sender, about: receiver), by: .user(receiver))
  }

  mutating func notifyOfRequest(_ request: Int) {
    let request = requests[request]
    let notice = notice("friend-request", to: request.receiver, about: request.sender, ["requestId=\(request.id)"])
    notify(notice, by: .user(request.sender))
  }

  // MARK: Blocks

  private mutating func part(_ person: Int, from other: Int) {
    clock += 1
    friendships.removeAll { $0.isBetween(person, other) }
    if let pending = pending(between: person, and: other) {
      requests[pending].status = requests[pending].sender == person ? "cancelled" : "declined"
    }
    forgetQueued(between: person, and: other)
    for event in events.indices where !events[event].isArchived { part(person, from: other, at: event) }
  }

  /// Drops the queued notices of each about the other and the other's events, apart from events that both still host.
  private mutating func forgetQueued(between person: Int, and other: Int) {
    let events = events
    for (one, two) in [(person, other), (other, person)] {
      queue.removeAll { notice in
        guard notice.recipient == one else { return false }
        guard notice.user != two, let event = notice.event.map({ events[$0] }) else { return notice.user == two }
        return event.hosts.contains(two) && !(event.hosts.contains(one) && event.creator != two)
      }
    }
  }

  /// Neither stays a co-host or a guest of the other. Two co-hosts of a third user's event stay.
  private mutating func part(_ person: Int, from other: Int, at event: Int) {
    let pairs = [(person, other), (other, person)]
    for (one, two) in pairs where events[event].creator == two && events[event].coHosts.contains(one) {
      endRole(of: one, at: event)
    }
    for (one, two) in pairs where events[event].hosts.contains(two) {
      for visitor in proposedVisitors(at: event) where visitors[visitor].account == one {
        forgetNotices(about: visitor)
        remove(.visitor(visitor), from: event, by: .block)
      }
    }
    for (one, two) in pairs where events[event].hosts.contains(two) && invitees(of: event).contains(one) {
      remove(.user(one), from: event, by: .block)
    }
    endOffers(to: [person, other], of: event)
  }
}
