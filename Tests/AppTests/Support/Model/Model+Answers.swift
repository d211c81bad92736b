/// Answers, places, and the line of those who wait for one.
extension Model {
  /// - Parameter plusOnes: the number in the request, if there is one.
  mutating func answer(_ status: String, plusOnes: Int? = nil, to event: Int, by person: Int) -> Set<Int> {
    guard let index = invitation(of: .user(person), to: event) else {
      return events[event].hosts.contains(person) ? [409] : [404]
    }
    let old = invitations[index]
    if events[event].isClosed || old.status == "pending" { return [409] }
    let decision = decide(status, plusOnes: plusOnes, atMost: events[event].plan.maxPlusOnes, from: old)
    guard case .becomes(let new) = decision else { return decision.refusal }
    if new.isSameAnswer(as: old) { return [200] }
    if events[event].plan.isPastAnswers { return [409] }
    notifyHosts(of: replace(index, by: new), by: .user(person))
    promote(at: event, by: .user(person))
    return [200]
  }

  /// By a host. The rules of the guest's own answers apply, except for the deadline.
  mutating func setAnswer(_ status: String, of guest: Guest, to event: Int, by person: Int) -> Set<Int> {
    if let refusal = refusal(ofRoleAt: event, to: person) { return refusal }
    guard let index = invitation(of: guest, to: event), !isHidden(guest, from: person) else { return [404] }
    let old = invitations[index]
    if events[event].isClosed || old.status == "pending" { return [409] }
    if let visitor = guest.visitor, events[event].plan.isOver || visitors[visitor].isProposed { return [409] }
    let decision = decide(status, plusOnes: nil, atMost: maxPlusOnes(of: guest, at: event), from: old)
    guard case .becomes(let new) = decision else { return decision.refusal }
    if new.isSameAnswer(as: old) { return [200] }
    notifyHosts(of: replace(index, by: new), by: .user(person))
    if let user = guest.user {
      notify(notice("answer-set", to: user, of: event, about: person, ["status=\(new.status)"]), by: .user(person))
    }
    promote(at: event, by: .user(person))
    return [200]
  }

  /// - Returns: the new answer.
  @discardableResult
  mutating func replace(_ index: Int, by new: Invitation) -> Invitation {
    clock += 1
    let keepsPlaceInLine = invitations[index].status == "waitlisted" && new.status == "waitlisted"
    invitations[index] = new
    if !keepsPlaceInLine { invitations[index].answered = clock }
    return invitations[index]
  }

  /// The number of people whom a guest may bring. Through a revoked link, none.
  func maxPlusOnes(of guest: Guest, at event: Int) -> Int {
    guard let visitor = guest.visitor else { return events[event].plan.maxPlusOnes }
    let link = visitors[visitor].link
    return revoked.contains(link) ? 0 : links[link].maxPlusOnes
  }

  // MARK: The decision

  enum Decision {
    case refused(Int)
    case becomes(Invitation)

    var refusal: Set<Int> { if case .refused(let status) = self { [status] } else { [] } }
  }

  /// The state of a guest after an answer.
  ///
  /// - Parameter most: the number of people whom the guest may bring, besides those of an earlier answer.
  func decide(_ status: String, plusOnes: Int?, atMost most: Int, from old: Invitation) -> Decision {
    let comesBack = old.status == "declined" && status != "declined"
    let most = comesBack ? most : max(most, old.plusOnes)
    if let plusOnes, plusOnes > most { return .refused(422) }
    var new = old
    new.status = status
    new.plusOnes = plusOnes ?? min(old.plusOnes, most)
    guard status == "going" else { return .becomes(new) }
    let fitsEver = new.places <= capacity(of: old.event)
    let more = new.places - (old.status == "going" ? old.places : 0)
    let fitsNow = nextInLine(at: old.event) == nil && more <= freePlaces(at: old.event)
    switch old.status {
    case "going": if more > 0, !fitsNow { return .refused(409) }
    case "waitlisted":
      if new.places > old.places, !fitsEver { return .refused(409) }
      new.status = "waitlisted"
    default:
      if !fitsEver { return .refused(409) }
      if !fitsNow { new.status = "waitlisted" }
    }
    return .becomes(new)
  }

  // MARK: Places

  private func capacity(of event: Int) -> Int { events[event].plan.capacity ?? .max }

  /// Fewer than none if a host has lowered the capacity.
  private func freePlaces(at event: Int) -> Int {
    let taken = invitations.filter { $0.event == event && $0.status == "going" }.map(\.places).reduce(0, +)
    return events[event].plan.capacity.map { $0 - taken } ?? .max
  }

  /// The party that has waited for longest. Parties that are larger than the whole event are not in the way of others.
  private func nextInLine(at event: Int) -> Int? {
    let capacity = capacity(of: event)
    return invitations.indices.filter { index in
      let party = invitations[index]
      return party.event == event && party.status == "waitlisted" && party.places <= capacity
    }.min { invitations[$0].answered < invitations[$1].answered }
  }

  mutating func promote(at event: Int, by actor: Actor) {
    if events[event].isPast { return }
    var promoted: [Guest] = []
    while let next = nextInLine(at: event), invitations[next].places <= freePlaces(at: event) {
      invitations[next].status = "going"
      promoted.append(invitations[next].guest)
    }
    // Notices are in the order of ids, not in the order of the waiting list.
    for guest in promoted.sorted(by: { id(of: $0) < id(of: $1) }) { notifyOfPromotion(of: guest, at: event, by: actor) }
  }
}
