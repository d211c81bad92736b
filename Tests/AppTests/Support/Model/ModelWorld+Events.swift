import Postgres

@testable import App

/// The verbs on events and guest lists.
extension ModelWorld {
  mutating func create() async throws -> Int? {
    let me = liveUser()
    var guests = model.friends(of: me).filter { _ in chance(0.8) }
    if chance(0.06) { guests.append(anyUser()) }
    let plan = somePlan()
    let others: Members = [("timeZone", "Europe/Berlin"), ("inviteeIds", guests.map { model.people[$0].id })]
    let response = try await call(.create, by: me, body: plan.members + others)
    let right = model.create(response.json["id"].string ?? "", plan, by: me, inviting: guests)
    try judge(response, right)
    return right == [201] ? model.events.count - 1 : nil
  }

  mutating func edit() async throws -> Int? {
    guard let event = someEvent() else { return nil }
    let old = model.events[event]
    let (plan, named) = change(old.plan)
    let version: Int? = chance(0.7) ? nil : old.version + (chance(0.3) ? 1 : 0)
    let me = someHost(of: event)
    let response = try await call(
      .edit, by: me, of: .event(event), body: plan.members.filter { named.contains($0.name) },
      headers: version.map { [("If-Match", "\"\($0)\"")] } ?? [])
    try judge(response, model.edit(event, by: me, to: plan, ifVersion: version))
    return event
  }

  mutating func cancelEvent() async throws -> Int? {
    guard let event = someEvent() else { return nil }
    let me = chance(0.8) ? rightful(model.events[event].creator) : someHost(of: event)
    let response = try await call(.cancelEvent, by: me, of: .event(event))
    try judge(response, model.cancelEvent(event, by: me))
    return event
  }

  mutating func archive() async throws {
    _ = try await app.service.change { try await Event.archive(endedBefore: .now(), atMost: 1000, in: $0) }
    model.archive()
    note("all events that are over are archived")
    done[.archive, default: 0] += 1
  }

  /// Copies an event in any state to a coming one.
  mutating func duplicate() async throws -> Int? {
    guard let event = chance(0.7) ? someEvent() : pick(Array(model.events.indices)) else { return nil }
    let me = someHost(of: event)
    let start = someTimes(isOver: false).start
    let (keepsDuration, invites) = (chance(0.6), chance(0.7))
    let someEnd = someTimes(isOver: false).end
    let end: String?? = keepsDuration ? nil : .some(someEnd)
    var body: Members = [("startTime", start), ("invite", invites)]
    if let end { body.append(("endTime", end)) }
    let response = try await call(.duplicate, by: me, of: .event(event), body: body)
    let id = response.json["id"].string ?? ""
    let right = model.duplicate(event, as: id, start: start, end: end, inviting: invites, by: me)
    try judge(response, right)
    return right == [201] ? model.events.count - 1 : event
  }

  // MARK: Guests

  mutating func invite() async throws -> Int? {
    guard let event = someEvent() else { return nil }
    let (me, hosts) = (someHost(of: event), model.events[event].hosts)
    var guests = model.friends(of: me).filter { _ in chance(0.5) }
    let stranger = anyUser()
    // The contract does not say whether a former friend may be invited twice.
    if chance(0.1), model.invitation(of: .user(stranger), to: event) == nil, !hosts.contains(stranger) {
      guests.append(stranger)
    }
    // A friend across another host's block is refused, and with them all others: rarely, so that others are invited.
    if chance(0.8) { guests.removeAll { model.isHidden($0, fromHostsOf: event) } }
    if guests.isEmpty { return nil }
    let ids = guests.map { model.people[$0].id }
    let response = try await call(.invite, by: me, of: .event(event), body: [("userIds", ids)])
    try judge(response, model.invite(guests, to: event, by: me))
    return event
  }

  mutating func withdraw() async throws -> Int? {
    guard let event = someEvent() else { return nil }
    let me = someHost(of: event)
    // The contract does not say whether a host may withdraw the invitation of a hidden guest.
    guard let guest = someGuest(of: event), !model.isHidden(guest, from: me) else { return nil }
    let response = try await call(.withdraw, by: me, of: .event(event), .guest(guest))
    try judge(response, model.withdraw(guest, from: event, by: me))
    return event
  }

  mutating func answer() async throws -> Int? {
    let ofInvitees = model.invitations.filter { $0.guest.user != nil }
    let live = ofInvitees.filter { !model.events[$0.event].isClosed }
    let invitation = pick(chance(0.9) ? live : ofInvitees)
    let event = chance(0.95) ? invitation?.event : someEvent()
    guard let event else { return nil }
    let me = chance(0.95) ? invitation?.guest.user ?? liveUser() : liveUser()
    let status = ["going", "going", "going", "maybe", "declined"][roll(0..<5)]
    let plusOnes: Int? = chance(0.4) ? nil : roll(0..<4)
    var body: Members = [("status", status)]
    if let plusOnes { body.append(("plusOnes", plusOnes)) }
    let response = try await call(.answer, by: me, of: .event(event), body: body)
    try judge(response, model.answer(status, plusOnes: plusOnes, to: event, by: me))
    return event
  }

  mutating func setAnswer() async throws -> Int? {
    guard let event = someEvent(), let guest = someGuest(of: event) else { return nil }
    let me = someHost(of: event)
    let status = someAnswer()
    let response = try await call(.setAnswer, by: me, of: .event(event), .guest(guest), body: [("status", status)])
    try judge(response, model.setAnswer(status, of: guest, to: event, by: me))
    return event
  }

  mutating func remind() async throws -> Int? {
    guard let event = someEvent() else { return nil }
    let me = someHost(of: event)
    let response = try await call(.remind, by: me, of: .event(event))
    let (right, reminded) = model.remind(of: event, by: me)
    try judge(response, right)
    guard response.status >= 300 || response.json["reminded"].int == reminded else {
      throw violation("\(reminded) are reminded, not \(response.body)")
    }
    return event
  }

  // MARK: Random plans

  mutating func someAnswer() -> String { ["going", "going", "maybe", "declined"][roll(0..<4)] }

  /// A guest of an event, or sometimes another user.
  private mutating func someGuest(of event: Int) -> Model.Guest? {
    chance(0.9) ? pick(model.guests(of: event)) : .user(anyUser())
  }

  private mutating func somePlan() -> Model.Plan {
    let isOver = chance(0.2)
    let (start, end) = someTimes(isOver: isOver)
    let number = fresh()
    return Model.Plan(
      title: "Event \(number)", note: chance(0.5) ? nil : "Note", start: start, end: end,
      location: chance(0.5) ? nil : "Park", url: Self.url(number),
      capacity: isOver || chance(0.3) ? nil : roll(1..<5),
      answerBy: chance(0.75) ? nil : someDeadline(isOver: isOver || chance(0.3)),
      maxPlusOnes: chance(0.4) ? 0 : roll(1..<4))
  }

  /// - Returns: the new plan, and the fields that the edit names.
  private mutating func change(_ old: Model.Plan) -> (plan: Model.Plan, named: Set<String>) {
    var plan = old
    var named: Set<String> = []
    if chance(0.4) {
      let number = fresh()
      plan.title = "Event \(number)"
      named.insert("title")
      if number % 2 == 0 {
        plan.url = Self.url(number)
        named.insert("url")
      }
    }
    if chance(0.3) {
      plan.note = chance(0.4) ? nil : "Note \(roll(0..<3))"
      named.insert("note")
    }
    if chance(0.3) {
      (plan.start, plan.end) = someTimes(isOver: plan.isOver)
      named.formUnion(["startTime", "endTime"])
    }
    if chance(0.3) {
      plan.location = chance(0.4) ? nil : "Park \(roll(0..<3))"
      named.insert("location")
    }
    if chance(0.5), !plan.isOver {
      plan.capacity = chance(0.3) ? nil : roll(1..<4)
      named.insert("capacity")
    }
    if chance(0.2) {
      plan.answerBy = chance(0.6) ? nil : someDeadline(isOver: plan.isOver || chance(0.4))
      named.insert("answerBy")
    }
    if chance(0.2) {
      plan.maxPlusOnes = roll(0..<4)
      named.insert("maxPlusOnes")
    }
    return (plan, named)
  }

  private static func url(_ number: Int) -> String? { number % 3 == 0 ? nil : "https://example.com/\(number % 4)" }

  /// Times long ago or years ahead. Some events start at the same time.
  private mutating func someTimes(isOver: Bool) -> (start: String, end: String?) {
    let day = "\(isOver ? 2020 : 2035)-05-0\(roll(1..<8))"
    return ("\(day)T1\(roll(0..<3)):00:00Z", chance(0.5) ? nil : "\(day)T2\(roll(0..<3)):00:00Z")
  }

  /// Long ago or years ahead, and before all starts.
  private mutating func someDeadline(isOver: Bool) -> String { "\(isOver ? 2019 : 2034)-04-0\(roll(1..<8))T10:00:00Z" }
}

extension Model.Plan {
  /// As in a request.
  fileprivate var members: Members {
    [
      ("title", title), ("note", note), ("startTime", start), ("endTime", end),
      ("location", location.map { ["name": $0] }), ("url", url), ("capacity", capacity), ("answerBy", answerBy),
      ("maxPlusOnes", maxPlusOnes),
    ]
  }
}
