import Postgres

@testable import App

/// The verbs on hosts, and on what is proposed to users.
extension ModelWorld {
  /// The user mostly decides about the offer at once.
  mutating func addHost() async throws -> Int? {
    guard let event = someEvent() else { return nil }
    let creator = model.events[event].creator
    let user = chance(0.85) ? pick(model.friends(of: creator) + model.invitees(of: event)) : anyUser()
    guard let user else { return nil }
    let me = rightful(creator)
    let response = try await call(.addHost, by: me, of: .event(event), .user(user))
    let (eventID, userID) = (Event.ID(model.events[event].id), User.ID(model.people[user].id))
    let offer: Proposal.ID? = try await app.value(
      "SELECT id FROM host_offers WHERE event_id = \(eventID) AND user_id = \(userID)")
    try judge(response, model.offerHost(offer?.description ?? "", to: user, of: event, by: me))
    if chance(0.7), let offer = model.offers.first(where: { $0.event == event && $0.user == user }) {
      try await decide(offer, accepts: chance(0.75))
    }
    return event
  }

  /// On behalf of the creator, or of the co-host.
  mutating func removeHost() async throws -> Int? {
    let shared = model.events.indices.filter { !model.events[$0].coHosts.isEmpty }
    guard let event = chance(0.9) ? pick(shared) : someEvent() else { return nil }
    let user = chance(0.9) ? pick(model.events[event].hosts) : anyUser()
    guard let user else { return nil }
    let me = chance(0.4) ? rightful(user) : rightful(model.events[event].creator)
    let response = try await call(.removeHost, by: me, of: .event(event), .user(user))
    try judge(response, model.removeHost(user, from: event, by: me))
    return event
  }

  /// Accepts or declines an offer to host, or a visitor's answer.
  mutating func decide(accepts: Bool) async throws -> Int? {
    let proposed = model.visitors.indices.filter {
      model.visitors[$0].isProposed && model.invitation(ofVisitor: $0) != nil
    }
    let prefersOffers = chance(0.3)
    if let offer = pick(model.offers), proposed.isEmpty || prefersOffers {
      try await decide(offer, accepts: accepts)
      return offer.event
    }
    guard let visitor = pick(proposed), let account = model.visitors[visitor].account else { return nil }
    let me = rightful(account)
    let verb: Verb = accepts ? .acceptProposal : .declineProposal
    let response = try await call(verb, by: me, of: .proposal(model.visitors[visitor].id))
    try judge(response, accepts ? model.acceptAnswer(visitor, by: me) : model.declineAnswer(visitor, by: me))
    return event(of: visitor)
  }

  private mutating func decide(_ offer: Model.Offer, accepts: Bool) async throws {
    let me = rightful(offer.user)
    let response = try await call(accepts ? .acceptProposal : .declineProposal, by: me, of: .proposal(offer.id))
    try judge(response, accepts ? model.acceptHost(offer, by: me) : model.declineHost(offer, by: me))
  }
}
