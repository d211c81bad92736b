import Foundation

/// Actions of hosts, besides editing and inviting.
extension PreviewWorld {
  func addHost(_ id: String, to event: Event) throws {
    try checkIsMine(event)
    try checkIsOpen(event)
    let guest = guests[event.id]?.first { $0.user?.id.wire == id.lowercased() }
    // An offer changes nothing that its sender sees, and no one in a preview accepts it.
    guard guest?.user != nil || friends.contains(where: { $0.id.wire == id.lowercased() }) else {
      throw Problem.missing(.userNotFound)
    }
  }

  mutating func removeHost(_ id: String, from event: Event) throws {
    let isSelf = id.lowercased() == me.id.wire
    if isSelf { try checkIsHosted(event) } else { try checkIsMine(event) }
    guard isSelf else {
      change(event.id) { $0.hosts.removeAll { $0.id.wire == id.lowercased() } }
      return touch(.events)
    }
    // Without the role, the user is no longer part of the event.
    events.removeAll { $0.id == event.id }
    touch(.events)
  }

  mutating func setAnswer(of guest: String, at event: Event, _ request: PreviewRequest) throws {
    try checkIsHosted(event)
    try checkIsOpen(event)
    let body: [String: InvitationStatus] = try request.read()
    guard let place = guests[event.id]?.firstIndex(where: { $0.id.wire == guest.lowercased() }),
      var changed = guests[event.id]?[place], let status = body["status"]
    else { throw Problem.missing(.guestNotFound) }
    let before = changed.status
    guard before != .pending else {
      throw Problem.preview(.approvalPending, 409, "A host approves the guest first.")
    }
    (changed.status, changed.answeredAt) = (status, now)
    guests[event.id]?[place] = changed
    change(event.id) { event in
      event.counts?.add(-(1 + changed.plusOnes), to: before.rawValue)
      event.counts?.add(1 + changed.plusOnes, to: status.rawValue)
    }
    touch(.events)
  }

  mutating func approve(_ guest: String, at event: Event) throws {
    try checkIsHosted(event)
    try checkIsOpen(event)
    guard let place = guests[event.id]?.firstIndex(where: { $0.id.wire == guest.lowercased() }),
      var approved = guests[event.id]?[place]
    else { throw Problem.missing(.guestNotFound) }
    guard approved.status == .pending else { return }
    // The export does not say which answer a visitor wants.
    approved.status = approved.user == nil ? .going : .invited
    guests[event.id]?[place] = approved
    change(event.id) { event in
      event.counts?.add(-(1 + approved.plusOnes), to: InvitationStatus.pending.rawValue)
      event.counts?.add(1 + approved.plusOnes, to: approved.status.rawValue)
    }
    touch(.events)
  }

  func remind(_ event: Event) throws -> [String: Int] {
    try checkIsHosted(event)
    try checkIsOpen(event)
    return ["reminded": (guests[event.id] ?? []).count { $0.status == .invited }]
  }

  mutating func duplicate(_ event: Event, _ request: PreviewRequest) throws -> Event {
    try checkIsHosted(event)
    let copy: EventCopy = try request.read()
    let length = event.endTime.map { $0.timeIntervalSince(event.startTime) }
    let invited = (guests[event.id] ?? []).filter { guest in copy.invite && friends.contains { $0.id == guest.user?.id }
    }
    var new = event
    new.id = newID()
    new.startTime = copy.startTime
    new.endTime = copy.endTime.applied(to: length.map { copy.startTime.addingTimeInterval($0) })
    (new.status, new.version, new.createdAt, new.updatedAt, new.answerBy) = (.scheduled, 1, now, now, nil)
    (new.creator, new.hosts, new.myRole, new.myStatus) = (me.person, [me.person], .creator, .creator)
    new.counts = Counts(invited: invited.count)
    guests[new.id] = invited.map { guest in
      var guest = guest
      (guest.status, guest.plusOnes, guest.answeredAt) = (.invited, 0, nil)
      return guest
    }
    events.append(new)
    sortEvents()
    touch(.events)
    return new
  }

  mutating func links(of event: Event, _ request: PreviewRequest, _ id: String?) throws -> TransportResponse {
    try checkIsHosted(event)
    let known = links[event.id] ?? []
    guard let id else {
      guard request.method == "POST" else { return try list(known, request) }
      let draft: ShareLinkDraft = try request.read()
      let id = newID()
      let link = ShareLink(
        id: id, url: export.baseURL.appendingPathComponent("e/\(id.wire)"), kind: draft.kind, shows: draft.shows,
        expiresAt: draft.expiresAt, maxGuests: draft.maxGuests, maxPlusOnes: draft.maxPlusOnes ?? 0,
        email: draft.email ?? .off, approval: draft.approval ?? true, createdAt: now)
      links[event.id] = known + [link]
      return try .json(link, status: 201)
    }
    if request.method == "DELETE" {
      // The export does not say who came through which link.
      if request.query["visitors"] == "remove" {
        for guest in guests[event.id] ?? [] where guest.user == nil { remove(guest, from: event.id) }
      }
      links[event.id]?.removeAll { $0.id.wire == id.lowercased() }
      return .noContent
    }
    guard let place = known.firstIndex(where: { $0.id.wire == id.lowercased() }) else {
      throw Problem.missing(.linkNotFound)
    }
    var link = known[place]
    if request.method == "PATCH" {
      let edit: ShareLinkEdit = try request.read()
      link.kind = edit.kind ?? link.kind
      link.shows = edit.shows ?? link.shows
      link.expiresAt = edit.expiresAt.applied(to: link.expiresAt)
      link.maxGuests = edit.maxGuests.applied(to: link.maxGuests)
      link.maxPlusOnes = edit.maxPlusOnes ?? link.maxPlusOnes
      link.email = edit.email ?? link.email
      link.approval = edit.approval ?? link.approval
      links[event.id]?[place] = link
    }
    return try .json(link)
  }
}
