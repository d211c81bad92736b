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

  /// Merges all claimed visitors, in the order of their ids. Those who wait for approval are left for later.
  ///
  /// - Returns: how many are merged.
  mutating func merge() -> Int {
    let due = visitors.indices.filter { visitor in
      visitors[visitor].account != nil
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
    forgetNotices(about: guest)
    if isHidden(person, fromHostsOf: event) { return remove(guest, from: event, by: nil) }
    if events[event].hosts.contains(person) { return remove(guest, from: event, by: guest) }
    guard let mine = invitation(of: person, to: event) else {
      invitations.remove(at: index)
      var new = Invitation(event: event, guest: person, status: visit.status, plusOnes: visit.plusOnes)
      new.answered = visit.answered
      return invitations.append(new)
    }
    let kept = Self.merged(visit, with: invitations[mine])
    (invitations[mine].status, invitations[mine].plusOnes) = (kept.status, kept.plusOnes)
    invitations[mine].answered = kept.answered
    remove(guest, from: event, by: guest)
  }

  /// The newer answer, or the place, or the earlier place in the line.
  private static func merged(_ visit: Invitation, with own: Invitation) -> Invitation {
    if own.answered == 0 { return visit }
    var (newer, older) = visit.answered > own.answered ? (visit, own) : (own, visit)
    switch (newer.status, older.status) {
    case ("waitlisted", "going"): return older
    case ("waitlisted", "waitlisted"): newer.answered = older.answered
    default: break
    }
    return newer
  }
}
