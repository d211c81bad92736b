/// Visitors whose address an account has verified.
extension Model {
  /// Merges all claimed visitors, in the order of their ids, or proposes their answers. Those who wait for approval are
  /// left for later.
  ///
  /// - Returns: how many are merged.
  mutating func merge() -> Int {
    let due = visitors.indices.filter { visitor in
      visitors[visitor].account != nil && !visitors[visitor].isProposed
        && invitation(ofVisitor: visitor).map { invitations[$0].status != "pending" } ?? false
    }
    for visitor in due.sorted(by: { visitors[$0].id < visitors[$1].id }) { merge(visitor) }
    return due.count
  }

  private mutating func merge(_ visitor: Int) {
    guard let person = visitors[visitor].account, let index = invitation(ofVisitor: visitor) else { return }
    let visit = invitations[index]
    let event = visit.event
    let mine = invitation(of: .user(person), to: event).map { invitations[$0] }
    clock += 1
    if isHidden(person, fromHostsOf: event) { return drop(visitor, from: event, by: .block) }
    if events[event].hosts.contains(person) { return drop(visitor, from: event, by: .visitor) }
    if mine == nil, events[event].removed.contains(person) { return drop(visitor, from: event, by: .visitor) }
    let answer = ["status=\(visit.status)"] + Self.plusOnes(visit.status == "declined" ? 0 : visit.plusOnes)
    if let mine, mine.status != "invited", !mine.isSameAnswer(as: visit) {
      if events[event].isPast { return drop(visitor, from: event, by: .visitor) }
      visitors[visitor].isProposed = true
      let proposal = ["proposalId=\(visitors[visitor].id)"]
      return notify(notice("answer-proposed", to: person, of: event, answer + proposal), by: .visitor)
    }
    move(visitor, to: person)
    notify(notice("answer-merged", to: person, of: event, answer), by: .visitor)
  }

  private mutating func drop(_ visitor: Int, from event: Int, by actor: Actor) {
    forgetNotices(about: visitor)
    remove(.visitor(visitor), from: event, by: actor)
  }

  /// The account gets the visitor's answer.
  private mutating func move(_ visitor: Int, to person: Int) {
    guard let index = invitation(ofVisitor: visitor) else { return }
    let visit = invitations[index]
    forgetNotices(about: visitor)
    guard let mine = invitation(of: .user(person), to: visit.event) else {
      invitations.remove(at: index)
      let (status, plusOnes) = (visit.status, visit.plusOnes)
      return invitations.append(
        Invitation(
          event: visit.event, guest: .user(person), status: status, plusOnes: plusOnes, answered: visit.answered))
    }
    let own = invitations[mine]
    let bothWait = own.status == "waitlisted" && visit.status == "waitlisted"
    (invitations[mine].status, invitations[mine].plusOnes) = (visit.status, visit.plusOnes)
    invitations[mine].answered = bothWait ? min(own.answered, visit.answered) : visit.answered
    remove(visit.guest, from: visit.event, by: .visitor)
  }

  // MARK: Proposed answers

  mutating func acceptAnswer(_ visitor: Int, by person: Int) -> Set<Int> {
    guard let event = event(ofProposed: visitor, to: person) else { return [404] }
    if invitation(of: .user(person), to: event) == nil, events[event].removed.contains(person) { return [404] }
    if events[event].isPast { return [409] }
    clock += 1
    move(visitor, to: person)
    if let mine = invitation(of: .user(person), to: event) { notifyHosts(of: invitations[mine], by: .user(person)) }
    return [200]
  }

  mutating func declineAnswer(_ visitor: Int, by person: Int) -> Set<Int> {
    guard let event = event(ofProposed: visitor, to: person) else { return [404] }
    if events[event].isPast { return [409] }
    clock += 1
    drop(visitor, from: event, by: .user(person))
    return [204]
  }

  private func event(ofProposed visitor: Int, to person: Int) -> Int? {
    guard visitors[visitor].isProposed, visitors[visitor].account == person else { return nil }
    return invitation(ofVisitor: visitor).map { invitations[$0].event }
  }
}
