/// Visitors whose address an account has verified.
extension Model {
  /// - Parameter isMailed: whether the visitor's page was opened with the link in the mail.
  mutating func confirm(_ visitor: Int, isMailed: Bool) -> Set<Int> {
    guard invitation(ofVisitor: visitor) != nil else { return [404] }
    if !isMailed { return [403] }
    visitors[visitor].isConfirmed = true
    for person in present where people[person].isVerified { claimVisits(of: person) }
    return [303]
  }

  mutating func verify(_ person: Int) -> Set<Int> {
    verifyEmail(of: person)
    claimVisits(of: person)
    return [204]
  }

  private mutating func claimVisits(of person: Int) {
    for index in visitors.indices where visitors[index].isConfirmed && visitors[index].email == people[person].email {
      visitors[index].account = person
    }
  }

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
    let (guest, event) = (visit.guest, visit.event)
    clock += 1
    let mine = invitation(of: person, to: event)
    let isAcrossBlock = self.isHidden(person, fromHostsOf: event)
    if isAcrossBlock || events[event].hosts.contains(person) || mine == nil && events[event].removed.contains(person) {
      forgetNotices(about: guest)
      return remove(guest, from: event, by: isAcrossBlock ? nil : guest)
    }
    let others = ["status=\(visit.status)"] + Self.plusOnes(visit.status == "declined" ? 0 : visit.plusOnes)
    if let mine, invitations[mine].status != "invited",
      invitations[mine].status != visit.status || invitations[mine].plusOnes != visit.plusOnes
    {
      if events[event].isClosed || events[event].plan.isOver {
        forgetNotices(about: guest)
        return remove(guest, from: event, by: guest)
      }
      visitors[visitor].isProposed = true
      let proposal = ["proposalId=\(visitors[visitor].id)"]
      return notify(notice("answer-proposed", to: person, of: event, others: others + proposal), by: guest)
    }
    move(visitor, to: person)
    notify(notice("answer-merged", to: person, of: event, others: others), by: guest)
  }

  /// The account gets the visitor's answer.
  private mutating func move(_ visitor: Int, to person: Int) {
    guard let index = invitation(ofVisitor: visitor) else { return }
    let visit = invitations[index]
    let (guest, event) = (visit.guest, visit.event)
    forgetNotices(about: guest)
    guard let mine = invitation(of: person, to: event) else {
      invitations.remove(at: index)
      var new = Invitation(event: event, guest: person, status: visit.status, plusOnes: visit.plusOnes)
      new.answered = visit.answered
      return invitations.append(new)
    }
    let own = invitations[mine]
    invitations[mine].answered =
      own.status == "waitlisted" && visit.status == "waitlisted" ? min(own.answered, visit.answered) : visit.answered
    (invitations[mine].status, invitations[mine].plusOnes) = (visit.status, visit.plusOnes)
    remove(guest, from: event, by: guest)
  }

  mutating func acceptAnswer(_ visitor: Int, by person: Int) -> Set<Int> {
    guard let index = proposed(visitor, to: person) else { return [404] }
    let event = invitations[index].event
    if invitation(of: person, to: event) == nil, events[event].removed.contains(person) { return [404] }
    if events[event].isClosed || events[event].plan.isOver { return [409] }
    clock += 1
    move(visitor, to: person)
    if let mine = invitation(of: person, to: event) { notifyHosts(of: invitations[mine], by: person) }
    return [200]
  }

  mutating func declineAnswer(_ visitor: Int, by person: Int) -> Set<Int> {
    guard let index = proposed(visitor, to: person) else { return [404] }
    let event = invitations[index].event
    if events[event].isClosed || events[event].plan.isOver { return [409] }
    clock += 1
    forgetNotices(about: Self.firstVisitor + visitor)
    remove(Self.firstVisitor + visitor, from: event, by: person)
    return [204]
  }

  private func proposed(_ visitor: Int, to person: Int) -> Int? {
    guard visitors[visitor].isProposed, visitors[visitor].account == person else { return nil }
    return invitation(ofVisitor: visitor)
  }
}
