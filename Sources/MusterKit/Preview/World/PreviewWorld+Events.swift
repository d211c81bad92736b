import Foundation

extension PreviewWorld {
  private static let participantsShown = 20
  private static let participantsListed = 5

  mutating func event(_ request: PreviewRequest) throws -> TransportResponse {
    let words = request.words
    guard words.count > 1 else {
      guard request.method == "POST" else { return try listEvents(request) }
      let id: Event.ID = newID()
      try perform(.createEvent(try request.read(defaults: ["inviteeIds": .array([])]), temporaryID: id))
      return try shown(id, status: 201)
    }
    let id: Event.ID = try request.id(1, else: .eventNotFound)
    switch (request.method, words.count > 2 ? words[2] : "", words.count > 3 ? words[3] : "") {
    case ("GET", "", _): break
    case ("GET", "invitations", _):
      _ = try lists.event(id)
      return try list((lists.surroundings?.guests[id] ?? []).sorted { $0.id.wire < $1.id.wire }, request)
    case ("GET", "calendar.ics", _): return try exported(request, else: .eventNotFound)
    case ("GET", "host-offers", ""):
      _ = try lists.hostedEvent(id)
      return try list([HostOffer](), request)
    case (_, "links", _): return try links(of: id, request)
    case ("POST", "reminders", ""):
      // Each guest is reminded once a day.
      let new = Set(try lists.reminded(of: id, at: now)).subtracting(reminded[id] ?? [])
      reminded[id, default: []].formUnion(new)
      return try .json(["reminded": new.count])
    case ("POST", "duplicate", ""):
      let copy: Event.ID = newID()
      try lists.duplicate(id, try request.read(defaults: ["invite": .bool(false)]), as: copy, now)
      return try shown(copy, status: 201)
    case ("PUT", "hosts", _): try lists.checkOffer(to: request.id(3, else: .userNotFound), at: id)
    case ("DELETE", "hosts", _):
      try lists.removeHost(request.id(3, else: .userNotFound), from: id)
      return .noContent
    case ("PUT", "invitations", "me"):
      let answer: AnswerBody = try request.read()
      try perform(.answer(answer.status, to: id, plusOnes: answer.plusOnes))
    case ("PUT", "invitations", _):
      let answer: AnswerBody = try request.read()
      try lists.setAnswer(answer.status, of: request.id(3, else: .guestNotFound), at: id, now)
    case ("POST", "invitations", ""):
      let body: [String: [User.ID]] = try request.read()
      try perform(.invite(body["userIds"] ?? [], to: id))
    case ("POST", "invitations", _): try lists.approve(request.id(3, else: .guestNotFound), at: id, now)
    case ("DELETE", "invitations", _): try perform(.withdraw(request.id(3, else: .userNotFound), from: id))
    case ("PATCH", "", _):
      try perform(.editEvent(id, applying: try request.read(), ifVersion: version(of: id, in: request)))
    case ("DELETE", "", _): try perform(.cancelEvent(id, ifVersion: version(of: id, in: request)))
    default: throw Problem.missing(.routeNotFound)
    }
    return try shown(id)
  }

  private struct AnswerBody: Decodable {
    let status: Answer
    let plusOnes: Int?
  }

  /// The event's own version if the request names it, and otherwise another one that it names.
  private func version(of id: Event.ID, in request: PreviewRequest) throws -> Int? {
    guard let versions = request.versions else { return nil }
    let mine = try lists.event(id).version
    return versions.contains(mine) ? mine : versions.first ?? 0
  }

  private func shown(_ id: Event.ID, status: Int = 200) throws -> TransportResponse {
    try .json(withParticipants(lists.event(id), atMost: Self.participantsShown), status: status)
  }

  func invitations(_ request: PreviewRequest) throws -> TransportResponse {
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

  private func listEvents(_ request: PreviewRequest) throws -> TransportResponse {
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

  private mutating func links(of event: Event.ID, _ request: PreviewRequest) throws -> TransportResponse {
    guard request.words.count > 3 else {
      guard request.method == "POST" else { return try list(lists.links(of: event), request) }
      let id: ShareLink.ID = newID()
      let url = export.baseURL.appendingPathComponent("e/\(id.wire)")
      let draft: ShareLinkDraft = try request.read(defaults: ["shows": .string(ShareLink.Shows.counts.rawValue)])
      return try .json(lists.createLink(draft, id: id, url: url, at: event, now), status: 201)
    }
    let id: ShareLink.ID = try request.id(3, else: .linkNotFound)
    switch request.method {
    case "PATCH": return try .json(lists.editLink(id, of: event, try request.read(), now))
    case "DELETE":
      let removesVisitors = request.query["visitors"] == "remove"
      try lists.revokeLink(id, of: event, removingVisitors: removesVisitors, now)
      return .noContent
    default: return try .json(lists.link(id, of: event))
    }
  }
}
