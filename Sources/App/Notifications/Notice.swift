import Foundation
import Postgres

/// A message about a change, for some recipients: the type that clients switch on, the ids with which they open the
/// right screen, and the data for its sentence. See ``rendered(_:at:)`` for the sentence.
struct Notice: Sendable {
  typealias ID = Identifier<Notice>

  /// The types, named as on the wire and in the database.
  enum Kind: String, CaseIterable, Sendable, SQLValue {
    case friendRequest = "friend-request"
    case friendAccepted = "friend-accepted"
    case eventInvited = "event-invited"
    case eventUpdated = "event-updated"
    case eventCancelled = "event-cancelled"
    case invitationWithdrawn = "invitation-withdrawn"
    case invitationAnswered = "invitation-answered"
    case waitlistPromoted = "waitlist-promoted"
    case eventReminder = "event-reminder"
    case hostOffered = "host-offered"
    case hostAdded = "host-added"
    case answerMerged = "answer-merged"
    case answerProposed = "answer-proposed"
    case answerSet = "answer-set"
    case answerReminder = "answer-reminder"
    case guestAnswered = "guest-answered"
    case approvalRequested = "approval-requested"
    case sessionRevoked = "session-revoked"
    case accountClaimed = "account-claimed"

    /// The types that a user may mute. Those about the account's safety are not among them, because the one who
    /// endangers it could mute them.
    static let optional = allCases.filter { ![.sessionRevoked, .accountClaimed].contains($0) }
  }

  /// One changed field of an event: its name and its values, as the API shows them.
  struct FieldChange: Sendable {
    let field: String
    let old: any JSONWritable & Sendable
    let new: any JSONWritable & Sendable
  }

  /// A visitor whom a notice about several visitors names.
  struct NamedGuest: Sendable {
    let id: Guest.ID
    let name: String
  }

  let kind: Kind
  /// Its subject. A recipient's notices about one subject arrive in order.
  let subject: UUID
  /// The user whom it names.
  let person: User.ID?
  /// Never a recipient.
  let actor: User.ID?
  let payload: JSONDocument

  private init(
    _ kind: Kind, about subject: UUID, naming person: User.ID? = nil, by actor: User.ID? = nil,
    _ members: [(StaticString, any JSONWritable)], plusOnes: Int = 0
  ) {
    self.kind = kind
    self.subject = subject
    self.person = person
    self.actor = actor ?? person
    var json = JSONWriter()
    json.object {
      $0.member("type", kind.rawValue)
      for (name, value) in members { $0.member(name, value) }
      if plusOnes > 0 { $0.member("plusOnes", plusOnes) }
    }
    payload = JSONDocument(json.text)
  }

  static func friendRequest(_ id: FriendRequest.ID, from sender: Person) -> Notice {
    Notice(
      .friendRequest, about: sender.id.rawValue, naming: sender.id,
      [("userId", sender.id), ("requestId", id), ("actor", sender.displayName)])
  }

  static func friendAccepted(by person: Person) -> Notice {
    Notice(
      .friendAccepted, about: person.id.rawValue, naming: person.id,
      [("userId", person.id), ("actor", person.displayName)])
  }

  static func eventInvited(_ event: Event.ID, _ title: String, by host: Person) -> Notice {
    Notice(
      .eventInvited, about: event.rawValue, naming: host.id,
      [("eventId", event), ("userId", host.id), ("title", title), ("actor", host.displayName)])
  }

  static func eventUpdated(_ event: Event.ID, _ title: String, _ changes: [FieldChange], by host: User.ID) -> Notice {
    Notice(
      .eventUpdated, about: event.rawValue, by: host, [("eventId", event), ("title", title), ("changes", changes)])
  }

  /// For an event whose local times stay while its times move, because the rules of its time zone have changed. Nothing
  /// that needs attention: it reaches the inbox, but no device.
  static func eventKeptLocalTime(_ event: Event.ID, _ title: String, _ changes: [FieldChange]) -> Notice {
    Notice(
      .eventUpdated, about: event.rawValue,
      [("eventId", event), ("title", title), ("cause", zoneRules), ("changes", changes)])
  }

  /// The `cause` of such a notice.
  static let zoneRules = "zone-rules"

  /// Names no user: the event may be cancelled because the creator's account is gone.
  static func eventCancelled(_ event: Event.ID, _ title: String, by host: User.ID) -> Notice {
    Notice(.eventCancelled, about: event.rawValue, by: host, [("eventId", event), ("title", title)])
  }

  static func invitationWithdrawn(_ event: Event.ID, _ title: String) -> Notice {
    Notice(.invitationWithdrawn, about: event.rawValue, [("eventId", event), ("title", title)])
  }

  /// - Parameter host: the host who set the answer.
  static func invitationAnswered(
    _ event: Event.ID, _ title: String, by guest: Person, _ status: Invitation.Status, with plusOnes: Int = 0,
    setBy host: User.ID? = nil
  ) -> Notice {
    Notice(
      .invitationAnswered, about: event.rawValue, naming: guest.id, by: host,
      [
        ("eventId", event), ("userId", guest.id), ("status", status.rawValue), ("title", title),
        ("actor", guest.displayName),
      ],
      plusOnes: status == .declined ? 0 : plusOnes)
  }

  /// For the guest who got the place. It names no user, so a block of the guest hides nothing from the guest.
  static func waitlistPromoted(_ event: Event.ID, _ title: String, guest: User.ID, with plusOnes: Int = 0) -> Notice {
    Notice(
      .waitlistPromoted, about: event.rawValue,
      [("eventId", event), ("userId", guest), ("title", title)], plusOnes: plusOnes)
  }

  /// For the hosts.
  ///
  /// - Parameter actor: the user whose change made the place free.
  static func guestPromoted(
    _ event: Event.ID, _ title: String, guest: Person, with plusOnes: Int = 0, by actor: User.ID?
  ) -> Notice {
    Notice(
      .waitlistPromoted, about: event.rawValue, naming: guest.id, by: actor,
      [("eventId", event), ("userId", guest.id), ("title", title), ("actor", guest.displayName)],
      plusOnes: plusOnes)
  }

  /// For the hosts. A visitor is not a user, so the notice names none.
  static func visitorPromoted(
    _ event: Event.ID, _ title: String, guest: Guest.ID, named name: String, with plusOnes: Int, by actor: User.ID?
  ) -> Notice {
    Notice(
      .waitlistPromoted, about: event.rawValue, by: actor,
      [("eventId", event), ("guestId", guest), ("title", title), ("actor", name)], plusOnes: plusOnes)
  }

  /// A visitor's answer, for the hosts.
  ///
  /// - Parameter host: the host who caused it by an approval.
  static func guestAnswered(
    _ event: Event.ID, _ title: String, guest: Guest.ID, named name: String, _ status: Invitation.Status,
    with plusOnes: Int, by host: User.ID? = nil
  ) -> Notice {
    Notice(
      .guestAnswered, about: event.rawValue, by: host,
      [("eventId", event), ("guestId", guest), ("status", status.rawValue), ("title", title), ("actor", name)],
      plusOnes: status == .declined ? 0 : plusOnes)
  }

  /// A guest who waits for approval, for the hosts.
  ///
  /// - Parameter user: nil for a visitor.
  static func approvalRequested(
    _ event: Event.ID, _ title: String, guest: Guest.ID, user: User.ID? = nil, named name: String,
    with plusOnes: Int = 0
  ) -> Notice {
    var members: [(StaticString, any JSONWritable)] = [("eventId", event), ("guestId", guest)]
    if let user { members.append(("userId", user)) }
    return Notice(
      .approvalRequested, about: event.rawValue, naming: user, members + [("title", title), ("actor", name)],
      plusOnes: plusOnes)
  }

  /// Answers of several visitors, for the hosts. If all of them wait for approval, it is a request.
  ///
  /// - Parameter named: some of them.
  static func guestsAnswered(
    _ event: Event.ID, _ title: String, count: Int, pending: Int, named guests: [NamedGuest]
  ) -> Notice {
    Notice(
      pending == count ? .approvalRequested : .guestAnswered, about: event.rawValue,
      [("eventId", event), ("title", title), ("count", count), ("pending", pending), ("guests", guests)])
  }

  static func eventReminder(_ event: Event.ID, _ title: String, start: Timestamp) -> Notice {
    Notice(.eventReminder, about: event.rawValue, [("eventId", event), ("title", title), ("start", start)])
  }

  /// For the user whom the creator wants as a co-host.
  static func hostOffered(_ event: Event.ID, _ title: String, _ offer: Proposal.ID, by creator: Person) -> Notice {
    Notice(
      .hostOffered, about: event.rawValue, naming: creator.id,
      [
        ("eventId", event), ("proposalId", offer), ("userId", creator.id), ("title", title),
        ("actor", creator.displayName),
      ])
  }

  /// A new co-host, for the other hosts.
  static func hostAdded(_ event: Event.ID, _ title: String, by host: Person) -> Notice {
    Notice(
      .hostAdded, about: event.rawValue, naming: host.id,
      [("eventId", event), ("userId", host.id), ("title", title), ("actor", host.displayName)])
  }

  /// For the account that has become the guest in place of a visitor with its address.
  static func answerMerged(
    _ event: Event.ID, _ title: String, _ status: Invitation.Status, with plusOnes: Int = 0
  ) -> Notice {
    Notice(
      .answerMerged, about: event.rawValue, [("eventId", event), ("status", status.rawValue), ("title", title)],
      plusOnes: status == .declined ? 0 : plusOnes)
  }

  /// For the account that decides about the answer of a visitor with its address. It has no name: anyone may have typed
  /// one.
  static func answerProposed(
    _ event: Event.ID, _ title: String, _ proposal: Proposal.ID, _ status: Invitation.Status, with plusOnes: Int = 0
  ) -> Notice {
    Notice(
      .answerProposed, about: event.rawValue,
      [("eventId", event), ("proposalId", proposal), ("status", status.rawValue), ("title", title)],
      plusOnes: status == .declined ? 0 : plusOnes)
  }

  /// For the guest whose answer a host has set.
  static func answerSet(_ event: Event.ID, _ title: String, _ status: Invitation.Status, by host: Person) -> Notice {
    Notice(
      .answerSet, about: event.rawValue, naming: host.id,
      [
        ("eventId", event), ("userId", host.id), ("status", status.rawValue), ("title", title),
        ("actor", host.displayName),
      ])
  }

  /// For guests who have not answered.
  static func answerReminder(_ event: Event.ID, _ title: String, by host: Person) -> Notice {
    Notice(
      .answerReminder, about: event.rawValue, naming: host.id,
      [("eventId", event), ("userId", host.id), ("title", title), ("actor", host.displayName)])
  }

  static func sessionRevoked(_ session: Session.ID) -> Notice {
    Notice(.sessionRevoked, about: session.rawValue, [("sessionId", session)])
  }

  /// For the owner of an account that someone else may have used before.
  static func accountClaimed(_ user: User.ID, _ left: User.Leftovers) -> Notice {
    Notice(
      .accountClaimed, about: user.rawValue,
      [("friends", left.friends), ("events", left.events), ("links", left.links)])
  }
}

extension Notice.FieldChange: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.fieldChange(new: new, old: old, field: Word(rawValue: field))
  }
}

extension Notice.NamedGuest: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.namedGuest(name: name, guestId: id)
  }
}
