import Foundation

extension PreviewWorld {
  private static let participantsShown = 20
  private static let participantsListed = 5

  mutating func createEvent(_ request: PreviewRequest) throws -> TransportResponse {
    let draft: EventDraft = try request.read(defaults: ["inviteeIds": .array([])])
    if let id = draft.id, try lists.isCreated(id) { return try shown(id) }
    let id = draft.id ?? newID()
    try perform(.createEvent(draft, id: id))
    return try shown(id, status: 201)
  }

  mutating func duplicate(_ id: Event.ID, _ request: PreviewRequest) throws -> TransportResponse {
    let draft: EventCopy = try request.read(defaults: ["invite": .bool(false)])
    if let copy = draft.id, try lists.isCreated(copy) { return try shown(copy) }
    let copy = draft.id ?? newID()
    try lists.duplicate(id, draft, as: copy, now)
    return try shown(copy, status: 201)
  }

  // MARK: Guests

  func listGuests(of id: Event.ID, _ request: PreviewRequest) throws -> TransportResponse {
    _ = try lists.event(id)
    return try list(sortedGuests(of: id), request)
  }

  mutating func invite(to id: Event.ID, _ request: PreviewRequest) throws -> TransportResponse {
    let invitees: Invitees = try request.read()
    return try shown(id, after: .invite(invitees.userIds, to: id))
  }

  mutating func answer(_ id: Event.ID, _ request: PreviewRequest) throws -> TransportResponse {
    let answer: InvitationAnswer = try request.read()
    if let event = try? lists.event(id), event.myRole == .guest {
      let isSuperseded = event.myParty.supersedes(
        answer.status, bringing: answer.plusOnes, ifStatus: answer.ifStatus, ifPlusOnes: answer.ifPlusOnes)
      if isSuperseded { try lists.refuse(event.myParty, at: event) }
    }
    return try shown(id, after: .answer(answer.status, to: id, plusOnes: answer.plusOnes))
  }

  mutating func setAnswer(
    of guest: Guest.ID, at id: Event.ID, _ request: PreviewRequest
  ) throws -> TransportResponse {
    let answer: AnswerSetting = try request.read()
    let found = self.guest(guest, of: id)
    if let event = try? lists.hostedEvent(id), let party = found?.party {
      let isSuperseded = party.supersedes(
        answer.status, bringing: nil, ifStatus: answer.ifStatus, ifPlusOnes: answer.ifPlusOnes)
      if isSuperseded { try lists.refuse(party, at: event) }
    }
    return try shown(id, after: .setAnswer(answer.status, of: found ?? .unknown(guest), at: id))
  }

  mutating func approve(_ guest: Guest.ID, at id: Event.ID) throws -> TransportResponse {
    try shown(id, after: .approve(self.guest(guest, of: id) ?? .unknown(guest), at: id))
  }

  private func guest(_ guest: Guest.ID, of id: Event.ID) -> Guest? {
    lists.guests(of: id)?.items.first { $0.id == guest }
  }

  /// Each guest is reminded once a day.
  mutating func remindGuests(of id: Event.ID) throws -> TransportResponse {
    let new = Set(try lists.reminded(of: id, at: now)).subtracting(reminded[id] ?? [])
    reminded[id, default: []].formUnion(new)
    return try .json(Reminded(reminded: new.count))
  }

  // MARK: Hosts

  /// Offers are made to others, and the demo's lists do not show them.
  mutating func addHost(_ user: User.ID, to id: Event.ID) throws -> TransportResponse {
    try shown(id, after: .addHost(user, to: id))
  }

  mutating func removeHost(_ user: User.ID, from id: Event.ID) throws -> TransportResponse {
    try perform(.removeHost(user, from: id))
    return .noContent
  }

  func listHostOffers(of id: Event.ID, _ request: PreviewRequest) throws -> TransportResponse {
    _ = try lists.hostedEvent(id)
    return try list([HostOffer](), request)
  }

  /// The event's own version if the request names it, and otherwise another one that it names.
  func version(of id: Event.ID, in request: PreviewRequest) throws -> Int? {
    guard let versions = request.versions else { return nil }
    let mine = try lists.event(id).version
    return versions.contains(mine) ? mine : versions.first ?? 0
  }

  mutating func shown(_ id: Event.ID, after write: Write? = nil, status: Int = 200) throws -> TransportResponse {
    if let write { try perform(write) }
    return try .json(withParticipants(lists.event(id), atMost: Self.participantsShown), status: status)
  }

  func getEvent(_ id: Event.ID, _ request: PreviewRequest) throws -> TransportResponse {
    var event = try withParticipants(lists.event(id), atMost: Self.participantsShown)
    if request.query["include"] == "guests" {
      let guests = sortedGuests(of: id)
      let isCut = guests.count > Self.usualLimit
      event.guests = Page(
        items: Array(guests.prefix(Self.usualLimit)), nextCursor: isCut ? "\(Self.usualLimit)@" : nil)
    }
    return try .json(event)
  }

  private func sortedGuests(of id: Event.ID) -> [Guest] {
    (lists.surroundings?.guests[id] ?? []).sorted { $0.id.wire < $1.id.wire }
  }

  func listInvitations(_ request: PreviewRequest) throws -> TransportResponse {
    let invitations = lists.invitations ?? []
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

  func listEvents(_ request: PreviewRequest) throws -> TransportResponse {
    let past = lists.surroundings?.past ?? []
    var shown = request.query["when"] == "past" ? past : lists.events ?? []
    if let ids: [Event.ID] = request.ids() { shown = ids.compactMap { try? lists.event($0) } }
    if request.query["include"] == "participants" {
      return try list(shown.map { withParticipants($0, atMost: Self.participantsListed) }, request)
    }
    if request.query["when"] != nil || request.query["ids"] != nil { return try list(shown, request) }
    return try list(.events, request)
  }

  /// Those who are going come first, and those who wait for approval or have declined come last.
  private func withParticipants(_ event: Event, atMost limit: Int) -> Event {
    let order: [GuestStatus] = [.going, .maybe, .waitlisted, .invited]
    let guests = lists.surroundings?.guests[event.id] ?? []
    let rest = guests.filter { !order.contains($0.status) }
    var event = event
    let first = order.flatMap { status in guests.filter { $0.status == status } }
    event.participants = Array((first + rest).prefix(limit))
    return event
  }

  // MARK: Links

  mutating func createLink(to event: Event.ID, _ request: PreviewRequest) throws -> TransportResponse {
    let id: ShareLink.ID = newID()
    let url = export.baseURL.appendingPathComponent("e/\(id.wire)")
    let draft: ShareLinkDraft = try request.read(defaults: ["shows": .string(ShareLink.Shows.counts.rawValue)])
    return try .json(lists.createLink(draft, id: id, url: url, at: event, now), status: 201)
  }

  mutating func revokeLink(
    _ id: ShareLink.ID, of event: Event.ID, _ request: PreviewRequest
  ) throws -> TransportResponse {
    let removesVisitors = request.query["visitors"] == "remove"
    try lists.revokeLink(id, of: event, removingVisitors: removesVisitors, now)
    return .noContent
  }

  func join(by token: String) throws -> TransportResponse {
    try lists.checkJoining(by: token)
    return .noContent
  }
}

extension Guest {
  /// A guest of whom only the id is known, for a request that the rules refuse.
  fileprivate static func unknown(_ id: Guest.ID) -> Guest { Guest(id: id, name: "", status: .invited) }
}
