/// Share links, and guests who come through them.
extension Model {
  /// As in the guest list.
  func id(of guest: Int) -> String {
    guest < Self.firstVisitor ? people[guest].id : visitors[guest - Self.firstVisitor].id
  }

  private func name(of guest: Int) -> String {
    guest < Self.firstVisitor ? people[guest].displayName : visitors[guest - Self.firstVisitor].name
  }

  mutating func add(_ link: Link) {
    links.append(link)
  }

  func mayCreateLink(to event: Int, by person: Int) -> Set<Int> { refusal(of: event, to: person) ?? [201] }

  /// Any host may, also of an event that no longer changes.
  mutating func revoke(_ link: Int, by person: Int) -> Set<Int> {
    let event = links[link].event
    if !canSee(event, person) { return [404] }
    if !events[event].hosts.contains(person) { return [403] }
    revoked.insert(link)
    return [204]
  }

  mutating func join(_ link: Int, by person: Int) -> Set<Int> {
    let event = links[link].event
    let hosts = events[event].hosts
    if revoked.contains(link) || hosts.contains(where: { isHidden($0, from: person) }) { return [404] }
    if hosts.contains(person) { return [409] }
    if invitation(of: person, to: event) != nil { return [200] }
    if events[event].removed.contains(person) { return [404] }
    if events[event].isClosed { return [409] }
    clock += 1
    let approval = links[link].approval
    invitations.append(Invitation(event: event, guest: person, status: approval ? "pending" : "invited"))
    if approval {
      let others = ["guestId=\(people[person].id)"]
      for host in hosts {
        notify(notice("approval-requested", to: host, of: event, about: person, others: others), by: person)
      }
    }
    return [200]
  }

  /// - Parameter make: makes the visitor, if one is made.
  mutating func visit(
    _ link: Int, _ status: String, plusOnes: Int, make: () throws -> Visitor
  ) rethrows -> Set<Int> {
    let event = links[link].event
    if revoked.contains(link) { return [404] }
    if events[event].isArchived { return [410] }
    if !takesAnswers(event) { return [409] }
    let guest = Self.firstVisitor + visitors.count
    var new: Invitation
    let nothing = Invitation(event: event, guest: guest)
    switch decide(status, plusOnes: plusOnes, atMost: links[link].maxPlusOnes, from: nothing) {
    case .refused: return [422]
    case .becomes(let group): new = group
    }
    if links[link].approval { (new.status, new.wanted) = ("pending", status) }
    visitors.append(try make())
    clock += 1
    new.answered = clock
    invitations.append(new)
    tellOfAnswer(new)
    return [303]
  }

  /// Whether guests, and not only hosts, still answer.
  private func takesAnswers(_ event: Int) -> Bool {
    !events[event].isClosed && !events[event].plan.isOver && !events[event].plan.isPastAnswers
  }

  /// The number of people whom a visitor may bring. Through a revoked link, none.
  func maxPlusOnes(of guest: Int) -> Int {
    let link = visitors[guest - Self.firstVisitor].link
    return revoked.contains(link) ? 0 : links[link].maxPlusOnes
  }

  func invitation(ofVisitor visitor: Int) -> Int? {
    invitations.firstIndex { $0.guest == Self.firstVisitor + visitor }
  }

  /// - Parameter plusOnes: nil for a form without the field.
  mutating func revisit(_ visitor: Int, _ status: String, plusOnes: Int?) -> Set<Int> {
    let guest = Self.firstVisitor + visitor
    guard let index = invitations.firstIndex(where: { $0.guest == guest }) else { return [404] }
    let old = invitations[index]
    if !takesAnswers(old.event) || visitors[visitor].isProposed { return [409] }
    var new: Invitation
    switch decide(status, plusOnes: plusOnes, atMost: maxPlusOnes(of: guest), from: old) {
    case .refused: return [422]
    case .becomes(let group): new = group
    }
    if old.status == "pending" { (new.status, new.wanted) = ("pending", status) }
    if new.status == old.status, new.plusOnes == old.plusOnes, new.wanted == old.wanted { return [303] }
    replace(index, by: &new)
    tellOfAnswer(new)
    promote(to: old.event, by: guest)
    return [303]
  }

  mutating func erase(_ visitor: Int) -> Set<Int> {
    let guest = Self.firstVisitor + visitor
    guard let event = invitations.first(where: { $0.guest == guest })?.event else { return [404] }
    clock += 1
    remove(guest, from: event, by: guest)
    forgetNotices(about: guest)
    return [200]
  }

  /// Deletes the notices that are about a visitor.
  mutating func forgetNotices(about guest: Int) {
    let (named, proposed) = ("guestId=\(id(of: guest))", "proposalId=\(id(of: guest))")
    let isAbout = { (notice: Notice) in notice.guest == named || notice.others.contains(proposed) }
    queue.removeAll(where: isAbout)
    inbox.removeAll(where: isAbout)
  }

  mutating func approve(_ guest: Int, at event: Int, by person: Int) -> Set<Int> {
    if !canSee(event, person) { return [404] }
    if !events[event].hosts.contains(person) { return [403] }
    guard let index = invitations.firstIndex(where: { $0.event == event && $0.guest == guest }) else { return [404] }
    let old = invitations[index]
    if old.status != "pending" { return [200] }
    if events[event].isClosed || events[event].plan.isOver { return [409] }
    if old.wanted == "declined" { return [200] }
    clock += 1
    guard let wanted = old.wanted else {
      invitations[index].status = "invited"
      notify(notice("event-invited", to: guest, of: event, about: person), by: person)
      return [200]
    }
    switch decide(wanted, plusOnes: nil, atMost: old.plusOnes, from: old) {
    case .refused: return [409]
    case .becomes(var new):
      (new.wanted, new.answered) = (nil, clock)
      invitations[index] = new
      tellOfAnswer(new, by: person)
    }
    return [200]
  }

  // MARK: Notices

  /// - Parameter host: the host who has approved the visitor, or set the answer.
  mutating func tellOfAnswer(_ answer: Invitation, by host: Int? = nil) {
    let isPending = answer.status == "pending"
    var others = ["guestId=\(id(of: answer.guest))"]
    let isRequest = isPending && answer.wanted != "declined"
    let status = isPending ? answer.wanted ?? "" : answer.status
    if !isRequest { others.append("status=\(status)") }
    others += Self.plusOnes(status == "declined" ? 0 : answer.plusOnes)
    let type = isRequest ? "approval-requested" : "guest-answered"
    for recipient in events[answer.event].hosts {
      var answered = notice(type, to: recipient, of: answer.event, others: others)
      answered.actor = name(of: answer.guest)
      notify(answered, by: host ?? answer.guest)
    }
  }

  /// - Parameter actor: the guest or host whose change freed the place.
  mutating func notifyOfPromotion(of guest: Int, at event: Int, by actor: Int) {
    let plusOnes = invitations.first { $0.guest == guest }?.plusOnes ?? 0
    let others = ["guestId=\(id(of: guest))"] + Self.plusOnes(plusOnes)
    for host in events[event].hosts {
      var answered = notice("waitlist-promoted", to: host, of: event, others: others)
      answered.actor = name(of: guest)
      notify(answered, by: actor)
    }
  }
}
