import Foundation

extension PreviewWorld {
  private static let participantsShown = 20
  private static let participantsListed = 5

  mutating func event(_ request: PreviewRequest, _ words: [String]) throws -> TransportResponse {
    guard words.count > 1 else {
      return try request.method == "POST" ? .json(create(request), status: 201) : listEvents(request)
    }
    guard let id = UUID(uuidString: words[1]), let found = (events + past).first(where: { $0.id == id }) else {
      throw Problem.missing(.eventNotFound)
    }
    switch (request.method, words.count > 2 ? words[2] : "", words.count > 3 ? words[3] : "") {
    case ("GET", "", _): return try .json(withParticipants(found, atMost: Self.participantsShown))
    case ("GET", "invitations", _): return try list(guests[id] ?? [], request)
    case ("GET", "calendar.ics", _): return try exported(request, else: .eventNotFound)
    case (_, "links", let link): return try links(of: found, request, link.isEmpty ? nil : link)
    case ("GET", "host-offers", ""):
      try checkIsHosted(found)
      return try list([HostOffer](), request)
    case ("POST", "reminders", ""): return try .json(remind(found))
    case ("POST", "duplicate", ""):
      let copy = try duplicate(found, request)
      return try .json(withParticipants(copy, atMost: Self.participantsShown), status: 201)
    case ("PUT", "hosts", let user): try addHost(user, to: found)
    case ("DELETE", "hosts", let user):
      try removeHost(user, from: found)
      return .noContent
    case ("PUT", "invitations", "me"): try answer(found, request)
    case ("PUT", "invitations", let guest): try setAnswer(of: guest, at: found, request)
    case ("PATCH", "", _): try edit(found, request)
    case ("DELETE", "", _): try cancel(found, request)
    case ("POST", "invitations", ""): try invite(to: found, request)
    case ("POST", "invitations", let guest): try approve(guest, at: found)
    case ("DELETE", "invitations", let guest): try withdraw(guest, from: found)
    default: throw Problem.missing(.routeNotFound)
    }
    guard let changed = events.first(where: { $0.id == id }) else { throw Problem.missing(.eventNotFound) }
    return try .json(withParticipants(changed, atMost: Self.participantsShown))
  }

  func invitations(_ request: PreviewRequest) throws -> TransportResponse {
    if let status = request.query["status"] {
      return try list(invitations.filter { $0.status.rawValue == status }, request)
    }
    guard request.query["include"] == "participants" else { return try list(.invitations, request) }
    let shown = invitations.map { invitation in
      var invitation = invitation
      invitation.event = withParticipants(invitation.event, atMost: Self.participantsListed)
      return invitation
    }
    return try list(shown, request)
  }

  private func listEvents(_ request: PreviewRequest) throws -> TransportResponse {
    var shown = request.query["when"] == "past" ? past : events
    if let ids = request.ids { shown = ids.compactMap { id in (events + past).first { $0.id == id } } }
    if request.query["include"] == "participants" {
      return try list(shown.map { withParticipants($0, atMost: Self.participantsListed) }, request)
    }
    if request.query["when"] != nil || request.ids != nil { return try list(shown, request) }
    return try list(.events, request)
  }

  /// Those who are going come first, and those who have declined are left out.
  private func withParticipants(_ event: Event, atMost limit: Int) -> Event {
    let order: [InvitationStatus] = [.going, .maybe, .waitlisted, .pending, .invited]
    var event = event
    event.participants = Array(
      order.flatMap { status in (guests[event.id] ?? []).filter { $0.status == status } }.prefix(limit))
    return event
  }

  // MARK: Writes

  private mutating func answer(_ event: Event, _ request: PreviewRequest) throws {
    guard event.myRole == .guest else {
      throw Problem.preview(.ownEvent, 409, "You are a host of this event, not a guest.")
    }
    try checkIsOpen(event)
    let body: JSONValue = try request.read()
    let answer = AnswerStatus(rawValue: body["status"]?.string ?? "")
    var plusOnes: Int?
    if case .integer(let number)? = body["plusOnes"] { plusOnes = number }
    try checkPlusOnes(plusOnes, at: event)
    guard let new = event.outcome(of: answer, plusOnes: plusOnes) else {
      throw Problem.preview(.noRoom, 409, "The event has no room for that many more people.")
    }
    guard new != (event.myStatus, event.myPlusOnes) else { return }
    change(event.id) { event in
      event.counts?.add(-(1 + event.myPlusOnes), to: event.myStatus.rawValue)
      (event.myStatus, event.myPlusOnes) = new
      event.counts?.add(1 + event.myPlusOnes, to: event.myStatus.rawValue)
    }
    let me = me.id
    guests[event.id] = guests[event.id]?.map { guest in
      guard guest.user?.id == me else { return guest }
      var guest = guest
      (guest.status, guest.plusOnes) = (InvitationStatus(rawValue: new.status.rawValue), new.plusOnes)
      guest.answeredAt = now
      return guest
    }
    touch(.events, .invitations)
  }

  private mutating func create(_ request: PreviewRequest) throws -> Event {
    let draft: EventDraft = try request.read()
    let id = newID()
    let invited = try friends(draft.inviteeIds, field: "inviteeIds")
    let event = Event(
      id: id, title: draft.title, note: draft.note, startTime: draft.startTime, endTime: draft.endTime,
      timeZone: draft.timeZone, location: draft.location, capacity: draft.capacity,
      maxPlusOnes: draft.maxPlusOnes ?? 0, creator: me.person, hosts: [me.person], myRole: .creator, myStatus: .creator,
      createdAt: now, updatedAt: now,
      counts: Counts(invited: invited.count))
    guests[id] = invited
    events.append(event)
    sortEvents()
    touch(.events)
    return withParticipants(event, atMost: Self.participantsShown)
  }

  private mutating func edit(_ event: Event, _ request: PreviewRequest) throws {
    try checkIsHosted(event, request)
    try checkIsOpen(event)
    let edit: EventEdit = try request.read()
    let now = now
    change(event.id) { event in
      event.title = edit.title ?? event.title
      event.note = edit.note.applied(to: event.note)
      event.startTime = edit.startTime ?? event.startTime
      event.endTime = edit.endTime.applied(to: event.endTime)
      event.timeZone = edit.timeZone ?? event.timeZone
      event.location = edit.location.applied(to: event.location)
      event.capacity = edit.capacity.applied(to: event.capacity)
      event.maxPlusOnes = edit.maxPlusOnes ?? event.maxPlusOnes
      event.version += 1
      event.updatedAt = now
    }
    sortEvents()
    touch(.events)
  }

  private mutating func cancel(_ event: Event, _ request: PreviewRequest) throws {
    try checkIsMine(event, request)
    guard event.status != .cancelled else { return }
    try checkIsOpen(event)
    change(event.id) { event in
      event.status = .cancelled
      event.version += 1
    }
    touch(.events)
  }

  private mutating func invite(to event: Event, _ request: PreviewRequest) throws {
    try checkIsHosted(event)
    try checkIsOpen(event)
    let body: [String: [UUID]] = try request.read()
    let present = Set((guests[event.id] ?? []).map(\.id))
    let new = try friends(body["userIds"] ?? [], field: "userIds").filter { !present.contains($0.id) }
    guests[event.id, default: []] += new
    change(event.id) { $0.counts?.invited += new.count }
    touch(.events)
  }

  private mutating func withdraw(_ guest: String, from event: Event) throws {
    try checkIsHosted(event)
    guard let gone = guests[event.id]?.first(where: { $0.id.wire == guest.lowercased() }) else { return }
    try checkIsOpen(event)
    remove(gone, from: event.id)
    touch(.events)
  }

  mutating func remove(_ guest: Guest, from event: UUID) {
    guests[event]?.removeAll { $0.id == guest.id }
    change(event) { $0.counts?.add(-(1 + guest.plusOnes), to: guest.status.rawValue) }
  }
}
