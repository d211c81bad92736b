import Postgres

/// Answers of all guests, through all doors: an invitee in the app, a visitor on their own page, and a host for both.
extension Guest {
  /// Sets a guest's answer. "Going" puts the guest on the waiting list, with their plus-ones, if not all of them find a
  /// place, or if others wait already. Giving up places promotes the guests who have waited longest. The same answer
  /// again changes nothing: a waiting guest keeps their place in the line, even with another number of plus-ones. The
  /// hosts are notified.
  ///
  /// - Parameters:
  ///   - plusOnes: the number of people whom the guest brings. Nil keeps the number.
  ///   - basis: what the answer is based on. Nil: the last answer wins.
  /// - Throws: ``AppError/eventNotFound`` or ``AppError/visitorNotFound``; ``AppError/ownEvent``; what ``AnswerRules``
  ///   throw.
  static func answer(
    _ answer: Invitation.Status, plusOnes: Int? = nil, basedOn basis: Party.Basis? = nil, to event: Event.ID,
    by guest: ID, as kind: Kind, in change: Change
  ) async throws {
    let found = try await LockedGuest.find(guest, as: kind, at: event, in: change)
    try await found.answer(answer, plusOnes: plusOnes, basedOn: basis, in: change)
  }

  /// Sets the answer of a guest on behalf of a host, even after the deadline. The rules of the guest's own answers
  /// apply: "going" to a full event puts the guest on the waiting list. The other hosts are notified. An invitee is
  /// also notified, and a visitor with a confirmed address gets a mail.
  ///
  /// - Throws: ``AppError/guestNotFound`` if the host sees no such guest; what ``AnswerRules`` throw.
  static func setAnswer(
    _ answer: Invitation.Status, basedOn basis: Party.Basis? = nil, of guest: ID, to event: Event.ID,
    by host: User.ID, in change: Change
  ) async throws {
    let (found, person, _) = try await LockedGuest.find(guest, at: event, seenBy: host, in: change)
    try await found.answer(answer, basedOn: basis, setBy: person, in: change)
  }

  /// Approves a guest who waits for it. An invitee becomes `invited`, and is notified. A visitor's wanted answer
  /// applies, by the rules of all answers, and the other hosts are notified. Approving a guest again changes nothing.
  /// A visitor's answer then stays, although no one has confirmed the address.
  ///
  /// - Parameter tags: of copies of the event with its guests. A guest who has asked after the newest of them is another
  ///   one to the host: someone has turned them away since, or they want to bring more people.
  /// - Throws: ``AppError/guestNotFound``; ``AppError/lostUpdate``; ``AppError/eventArchived`` once the event has ended;
  ///   ``AppError/noRoom`` if the party has become larger than the event.
  static func approve(
    _ guest: ID, at event: Event.ID, seenIn tags: EntityTags? = nil, by host: User.ID, in change: Change
  ) async throws {
    let (found, person, askedAt) = try await LockedGuest.find(guest, at: event, seenBy: host, in: change)
    if let tags, found.party.status == .pending, Event.newestStamp(in: tags).map({ askedAt <= $0 }) != true {
      throw AppError.lostUpdate
    }
    try found.approve(by: person, in: change)
  }
}

/// A guest of an event whose row is locked, with everything that an answer depends on. What differs between guests with
/// and without an account is decided here.
struct LockedGuest {
  let guest: Notice.NamedGuest
  let party: Party
  /// Only of a visitor.
  var visit: (visitor: Visitor, news: VisitorNews.Recent)?
  let event: Event.ID
  let title: String
  let hosts: [User.ID]
  let rules: AnswerRules

  // MARK: Finding

  /// Locks the event, which orders all answers to it, and reads the guest.
  static func find(
    _ guest: Guest.ID, as kind: Guest.Kind, at event: Event.ID, in change: Change
  ) async throws -> LockedGuest {
    switch kind {
    case .invitee: try await invitee(guest, at: event, in: change)
    case .visitor: try await visitor(guest, at: event, in: change)
    }
  }

  /// The same for a guest whom a host sees, with the time at which the guest has joined or answered last.
  static func find(
    _ guest: Guest.ID, at event: Event.ID, seenBy host: User.ID, in change: Change
  ) async throws -> (LockedGuest, host: Person, askedAt: Timestamp) {
    _ = try await Event.lock(event, by: host, in: change)
    let row = try await change.first(
      """
      SELECT user_id IS NULL AS is_visitor, greatest(since, answered_at) AS asked_at, \(Person.columns("u"))
      FROM event_guests AS g
      JOIN users AS u ON u.id = \(host)
      WHERE g.event_id = \(event) AND g.id = \(guest) AND \(Guest.isShown(to: host))
      """)
    guard let row else { throw AppError.guestNotFound }
    let kind: Guest.Kind = try row["is_visitor"] ? .visitor : .invitee
    return (try await find(guest, as: kind, at: event, in: change), try Person(row: row), try row["asked_at"])
  }

  private static func invitee(_ guest: Guest.ID, at event: Event.ID, in change: Change) async throws -> LockedGuest {
    let rows = try await change.pipeline(
      Event.Places.locking(event),
      "SELECT status, plus_ones FROM invitations WHERE event_id = \(event) AND user_id = \(guest) FOR NO KEY UPDATE",
      "SELECT \(Person.columns("u")), ARRAY(\(Event.hosts(of: event))) AS hosts FROM users AS u WHERE u.id = \(guest)")
    guard let row = rows[0].first, let person = rows[2].first else { throw AppError.eventNotFound }
    let hosts: [User.ID] = try person["hosts"]
    guard let own = rows[1].first else { throw hosts.contains(guest.user) ? AppError.ownEvent : AppError.eventNotFound }
    return LockedGuest(
      guest: Notice.NamedGuest(try Person(row: person)),
      party: Party(status: try own["status"], plusOnes: try own["plus_ones"]), event: event, title: try row["title"],
      hosts: hosts, rules: try await AnswerRules.read(row, of: event, in: change))
  }

  private static func visitor(_ guest: Guest.ID, at event: Event.ID, in change: Change) async throws -> LockedGuest {
    let rows = try await change.pipeline(
      Event.Places.locking(event),
      """
      SELECT \(Visitor.columns), coalesce(l.max_plus_ones, 0) AS max_plus_ones,
        ARRAY(\(Event.hosts(of: event))) AS hosts
      FROM visitors AS v
      LEFT JOIN share_links AS l ON l.id = v.link_id
      WHERE v.id = \(guest) AND v.event_id = \(event)
      """,
      VisitorNews.recent(at: event))
    guard let row = rows[0].first, let own = rows[1].first else { throw AppError.visitorNotFound }
    let visitor = try Visitor(row: own)
    return LockedGuest(
      guest: Notice.NamedGuest(id: guest, name: visitor.name), party: visitor.party,
      visit: (visitor, try VisitorNews.Recent(row: rows[2].first)), event: event, title: try row["title"],
      hosts: try own["hosts"],
      rules: try await AnswerRules.read(row, of: event, maxPlusOnes: try own["max_plus_ones"], in: change))
  }

  // MARK: Acting

  /// - Parameter host: the host who sets the answer; nil for the guest.
  func answer(
    _ answer: Invitation.Status, plusOnes: Int? = nil, basedOn basis: Party.Basis? = nil,
    setBy host: Person? = nil, in change: Change
  ) async throws {
    let new = try rules.party(
      after: answer, bringing: plusOnes, basedOn: basis, from: party, of: kind,
      isProposed: visit?.visitor.isProposed ?? false, isSetByHost: host != nil)
    guard new != party else { return }
    try write(new, in: change)
    let notice = Notice.answer(event, title, guest, new, setBy: host?.id)
    if let host {
      change.notify(hosts, about: notice)
      tell(.answerSet(event, title, new.status, by: host), orMail: .answerSet, in: change)
    } else if let news = visit?.news {
      if news.waits { try change.write("UPDATE visitors SET has_news = true WHERE id = \(guest.id)") }
      try VisitorNews.notify(hosts, about: notice, of: guest.id, at: event, after: news, in: change)
    } else {
      change.notify(hosts, about: notice)
    }
    try await Guest.promoteWaiting(
      at: event, after: party, rules.places, by: (host?.id ?? guest.user).map { .user($0) } ?? .visitor, in: change)
  }

  func approve(by host: Person, in change: Change) throws {
    guard party.status == .pending else { return try keep(in: change) }
    // No one can come to an event that has ended, although it stays live for a day.
    try rules.phase.checkIsNotOver()
    // Guests who decline need no approval. After a change of mind, they ask again.
    guard party.wanted != .declined else { return }
    let new = try rules.approved(party)
    try keep(in: change)
    try write(new, in: change)
    if new.status != .invited { change.notify(hosts, about: .answer(event, title, guest, new, setBy: host.id)) }
    tell(.eventInvited(event, title, by: host), orMail: .approved, in: change)
  }

  private var kind: Guest.Kind { guest.user == nil ? .visitor : .invitee }

  private func write(_ new: Party, in change: Change) throws {
    try Guest.write(guest.id, as: kind, at: event, from: party, to: new, in: change)
  }

  /// Notifies the guest: an invitee by a notice, and a visitor with a confirmed address by mail.
  private func tell(_ notice: Notice, orMail mail: VisitorMail.Kind, in change: Change) {
    if let user = guest.user {
      change.notify(user, about: notice)
    } else {
      change.mail(.visitors(mail, at: event, only: guest.id))
    }
  }

  /// Keeps the answer of a visitor whose address no one has confirmed as long as all others.
  private func keep(in change: Change) throws {
    guard let visit, !visit.visitor.isConfirmed else { return }
    try change.write(
      """
      UPDATE visitors AS v SET lapses_at = (
        SELECT \(Visitor.erasureTime("e")) FROM events AS e WHERE e.id = v.event_id AND e.archived_at IS NOT NULL
      )
      WHERE v.id = \(guest.id) AND v.event_id = \(event) AND v.lapses_at IS NOT NULL
      """)
  }
}

extension Notice {
  /// A guest's answer or request for approval, for the hosts. Guests who decline need no approval.
  ///
  /// - Parameter host: the host who set the answer, or caused it by an approval.
  static func answer(
    _ event: Event.ID, _ title: String, _ guest: NamedGuest, _ party: Party, setBy host: User.ID? = nil
  ) -> Notice {
    party.status == .pending && party.wanted != .declined
      ? .approvalRequested(event, title, guest, with: party.plusOnes)
      : .guestAnswered(event, title, guest, party.wanted ?? party.status, with: party.plusOnes, setBy: host)
  }
}

extension AppError {
  static let ownEvent = AppError(.conflict, "own-event", "You are a host of this event, not a guest.")
  static let guestNotFound = AppError(.notFound, "guest-not-found", "The event has no such guest.")
}
