/// Share links, and guests who come through them.
extension Model {
  mutating func add(_ link: Link) {
    links.append(link)
  }

  func mayCreateLink(to event: Int, by person: Int) -> Set<Int> { refusal(of: event, to: person) ?? [201] }

  /// Any host may, also of an event that no longer changes.
  mutating func revoke(_ link: Int, by person: Int) -> Set<Int> {
    if let refusal = refusal(ofRoleAt: links[link].event, to: person) { return refusal }
    revoked.insert(link)
    return [204]
  }

  mutating func join(_ link: Int, by person: Int) -> Set<Int> {
    let event = links[link].event
    if revoked.contains(link) || isHidden(person, fromHostsOf: event) { return [404] }
    if events[event].hosts.contains(person) { return [409] }
    if invitation(of: .user(person), to: event) != nil { return [200] }
    if events[event].removed.contains(person) { return [404] }
    if events[event].isClosed { return [409] }
    clock += 1
    let asks = links[link].approval
    invitations.append(Invitation(event: event, guest: .user(person), status: asks ? "pending" : "invited"))
    for host in events[event].hosts where asks {
      let notice = notice(
        "approval-requested", to: host, of: event, about: person, ["guestId=\(people[person].id)"])
      notify(notice, by: .user(person))
    }
    return [200]
  }

  mutating func approve(_ guest: Guest, at event: Int, by person: Int) -> Set<Int> {
    if let refusal = refusal(ofRoleAt: event, to: person) { return refusal }
    guard let index = invitation(of: guest, to: event) else { return [404] }
    let old = invitations[index]
    if old.status != "pending" { return [200] }
    if events[event].isPast { return [409] }
    if old.wanted == "declined" { return [200] }
    clock += 1
    if let user = guest.user {
      invitations[index].status = "invited"
      notify(notice("event-invited", to: user, of: event, about: person), by: .user(person))
      return [200]
    }
    let decision = decide(old.wanted ?? "", plusOnes: nil, atMost: old.plusOnes, from: old)
    guard case .becomes(var new) = decision else { return [409] }
    (new.wanted, new.answered) = (nil, clock)
    invitations[index] = new
    notifyHosts(of: new, by: .user(person))
    return [200]
  }

  // MARK: Visits

  /// - Parameter make: makes the visitor, if one is made.
  mutating func visit(
    _ link: Int, _ status: String, plusOnes: Int, make: () throws -> Visitor
  ) rethrows -> Set<Int> {
    let event = links[link].event
    if revoked.contains(link) { return [404] }
    if events[event].isArchived { return [410] }
    if !events[event].takesAnswers { return [409] }
    let nothing = Invitation(event: event, guest: .visitor(visitors.count))
    let decision = decide(status, plusOnes: plusOnes, atMost: links[link].maxPlusOnes, from: nothing)
    guard case .becomes(var new) = decision else { return [422] }
    if links[link].approval { (new.status, new.wanted) = ("pending", status) }
    visitors.append(try make())
    clock += 1
    new.answered = clock
    invitations.append(new)
    notifyHosts(of: new, by: .visitor)
    return [303]
  }

  /// - Parameter plusOnes: nil for a form without the field.
  mutating func revisit(_ visitor: Int, _ status: String, plusOnes: Int?) -> Set<Int> {
    guard let index = invitation(ofVisitor: visitor) else { return [404] }
    let old = invitations[index]
    if !events[old.event].takesAnswers || visitors[visitor].isProposed { return [409] }
    let most = maxPlusOnes(of: .visitor(visitor), at: old.event)
    guard case .becomes(var new) = decide(status, plusOnes: plusOnes, atMost: most, from: old) else { return [422] }
    if old.status == "pending" { (new.status, new.wanted) = ("pending", status) }
    if new.isSameAnswer(as: old) { return [303] }
    notifyHosts(of: replace(index, by: new), by: .visitor)
    promote(at: old.event, by: .visitor)
    return [303]
  }

  mutating func erase(_ visitor: Int) -> Set<Int> {
    guard let index = invitation(ofVisitor: visitor) else { return [404] }
    clock += 1
    remove(.visitor(visitor), from: invitations[index].event, by: .visitor)
    forgetNotices(about: visitor)
    return [200]
  }

  /// - Parameter isMailed: whether the visitor's page was opened with the link in the mail.
  mutating func confirm(_ visitor: Int, isMailed: Bool) -> Set<Int> {
    if invitation(ofVisitor: visitor) == nil { return [404] }
    if !isMailed { return [403] }
    visitors[visitor].isConfirmed = true
    for person in present where people[person].isVerified { claimVisits(of: person) }
    return [303]
  }

  mutating func claimVisits(of person: Int) {
    for index in visitors.indices where visitors[index].isConfirmed && visitors[index].email == people[person].email {
      visitors[index].account = person
    }
  }
}
