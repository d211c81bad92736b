import Postgres

@testable import App

/// The verbs of hosts.
extension ModelWorld {
  mutating func addHost() async throws -> Int? {
    guard let event = someEvent() else { return nil }
    let creator = model.events[event].host
    let user = chance(0.85) ? pick(model.friends(of: creator) + model.guests(of: event)) : anyUser()
    guard let user else { return nil }
    let me = rightful(creator)
    let response = try await call(
      .addHost, by: me, ["event": model.events[event].id, "invitee": model.people[user].id])
    let (eventID, userID) = (Event.ID(model.events[event].id), User.ID(model.people[user].id))
    let offer: Proposal.ID? = try await app.value(
      "SELECT id FROM host_offers WHERE event_id = \(eventID) AND user_id = \(userID)")
    try judge(response, model.offerHost(offer?.description ?? "", to: user, of: event, by: me))
    if chance(0.7), let index = model.offers.firstIndex(where: { $0.event == event && $0.user == user }) {
      let accepts = chance(0.75)
      try await close(model.offers[index], accepts: accepts)
    }
    return event
  }

  /// Accepts or declines an offer to host, or a visitor's answer.
  mutating func decide(accepts: Bool) async throws -> Int? {
    let proposed = model.visitors.indices.filter {
      model.visitors[$0].isProposed && model.invitation(ofVisitor: $0) != nil
    }
    let prefersOffers = chance(0.3)
    if let offer = pick(model.offers), proposed.isEmpty || prefersOffers {
      return try await close(offer, accepts: accepts)
    }
    guard let visitor = pick(proposed), let account = model.visitors[visitor].account else { return nil }
    let me = rightful(account)
    let response = try await call(
      accepts ? .acceptProposal : .declineProposal, by: me, ["proposal": model.visitors[visitor].id])
    try judge(response, accepts ? model.acceptAnswer(visitor, by: me) : model.declineAnswer(visitor, by: me))
    return model.links[model.visitors[visitor].link].event
  }

  @discardableResult
  private mutating func close(_ offer: Model.Offer, accepts: Bool) async throws -> Int? {
    let me = rightful(offer.user)
    let response = try await call(
      accepts ? .acceptProposal : .declineProposal, by: me, ["proposal": offer.id])
    try judge(response, accepts ? model.acceptHost(offer, by: me) : model.declineHost(offer, by: me))
    return offer.event
  }

  /// On behalf of the creator, or of the co-host.
  mutating func removeHost() async throws -> Int? {
    let shared = model.events.indices.filter { !model.events[$0].coHosts.isEmpty }
    guard let event = chance(0.9) ? pick(shared) : someEvent() else { return nil }
    let user = chance(0.9) ? pick(model.events[event].hosts) : anyUser()
    guard let user else { return nil }
    let me = chance(0.4) ? rightful(user) : rightful(model.events[event].host)
    let response = try await call(
      .removeHost, by: me, ["event": model.events[event].id, "invitee": model.people[user].id])
    try judge(response, model.removeHost(user, from: event, by: me))
    return event
  }

  mutating func setAnswer() async throws -> Int? {
    guard let event = someEvent() else { return nil }
    let guest = chance(0.9) ? pick(model.allGuests(of: event)) : anyUser()
    guard let guest else { return nil }
    let me = someHost(of: event)
    let status = ["going", "going", "maybe", "declined"][roll(0..<4)]
    let response = try await call(
      .setAnswer, by: me, ["event": model.events[event].id, "invitee": model.id(of: guest)],
      "{\"status\": \"\(status)\"}")
    try judge(response, model.setAnswer(status, of: guest, to: event, by: me))
    return event
  }

  mutating func remind() async throws -> Int? {
    guard let event = someEvent() else { return nil }
    let me = someHost(of: event)
    let response = try await call(.remind, by: me, ["event": model.events[event].id])
    let (right, reminded) = model.remind(of: event, by: me)
    try judge(response, right)
    guard response.status >= 300 || response.json["reminded"].int == reminded else {
      throw violation("\(reminded) are reminded, not \(response.body)")
    }
    return event
  }

  /// Copies an event in any state to a coming one.
  mutating func duplicate() async throws -> Int? {
    guard let event = chance(0.7) ? someEvent() : pick(Array(model.events.indices)) else { return nil }
    let me = someHost(of: event)
    let start = times(isOver: false).start
    let (keepsDuration, invites) = (chance(0.6), chance(0.7))
    let end = times(isOver: false).end
    let endTime = keepsDuration ? "" : ", \"endTime\": \(Self.json(end))"
    let response = try await call(
      .duplicate, by: me, ["event": model.events[event].id],
      "{\"startTime\": \(Self.json(start)), \"invite\": \(invites)\(endTime)}")
    let right = model.duplicate(
      event, as: response.json["id"].string ?? "", start: start, end: keepsDuration ? nil : .some(end),
      inviting: invites, by: me)
    try judge(response, right)
    return right == [201] ? model.events.count - 1 : event
  }
}
