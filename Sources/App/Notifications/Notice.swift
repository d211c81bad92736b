import Foundation
import Postgres

/// A message about a change, for some recipients. See ``stored`` for the type that clients switch on, the ids with which
/// they open the right screen, and the data for its sentence, and ``rendered(_:at:)`` for the sentence. `with` is the
/// number of people whom a guest brings.
enum Notice: Sendable {
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

  /// A guest whom a notice to the hosts names.
  struct NamedGuest: Sendable {
    let id: Guest.ID
    /// Nil for a visitor: the notice then names no user.
    var user: User.ID?
    let name: String
  }

  case friendRequest(FriendRequest.ID, from: Person)
  case friendAccepted(by: Person)
  case eventInvited(Event.ID, _ title: String, by: Person)
  case eventUpdated(Event.ID, _ title: String, [FieldChange], by: User.ID)
  /// For an event whose local times stay while its times move, because the rules of its time zone have changed. Nothing
  /// that needs attention: it reaches the inbox, but no device.
  case eventKeptLocalTime(Event.ID, _ title: String, [FieldChange])
  /// Names no user: the event may be cancelled because the creator's account is gone.
  case eventCancelled(Event.ID, _ title: String, by: User.ID)
  case invitationWithdrawn(Event.ID, _ title: String)
  /// A guest's answer, for the hosts. `setBy` is the host who set it, or caused it by an approval.
  case guestAnswered(
    Event.ID, _ title: String, NamedGuest, Invitation.Status, with: Int = 0, setBy: User.ID? = nil)
  /// For the guest who got the place. It names no user, so a block of the guest hides nothing from the guest.
  case waitlistPromoted(Event.ID, _ title: String, guest: User.ID, with: Int = 0)
  /// For the hosts. `by` is the user whose change made the place free.
  case guestPromoted(Event.ID, _ title: String, NamedGuest, with: Int = 0, by: User.ID?)
  /// A guest who waits for approval, for the hosts.
  case approvalRequested(Event.ID, _ title: String, NamedGuest, with: Int = 0)
  /// Answers of several visitors, for the hosts. If all of them wait for approval, it is a request. `named` are some of
  /// them.
  case guestsAnswered(Event.ID, _ title: String, count: Int, pending: Int, named: [NamedGuest])
  case eventReminder(Event.ID, _ title: String, start: Timestamp)
  /// For the user whom the creator wants as a co-host.
  case hostOffered(Event.ID, _ title: String, Proposal.ID, by: Person)
  /// A new co-host, for the other hosts.
  case hostAdded(Event.ID, _ title: String, by: Person)
  /// For the account that has become the guest in place of a visitor with its address.
  case answerMerged(Event.ID, _ title: String, Invitation.Status, with: Int = 0)
  /// For the account that decides about the answer of a visitor with its address. It has no name: anyone may have typed
  /// one.
  case answerProposed(Event.ID, _ title: String, Proposal.ID, Invitation.Status, with: Int = 0)
  /// For the guest whose answer a host has set.
  case answerSet(Event.ID, _ title: String, Invitation.Status, by: Person)
  /// For guests who have not answered.
  case answerReminder(Event.ID, _ title: String, by: Person)
  case sessionRevoked(Session.ID)
  /// For the owner of an account that someone else may have used before.
  case accountClaimed(User.ID, User.Leftovers)
}

extension Notice {
  /// The subject of notices about a user or a session: their id as a UUID of version 8. Clients make ids of events, of
  /// version 7, and an event with the id of a user must not share that user's line.
  static func subject<Thing>(_ id: Identifier<Thing>) -> UUID {
    var bytes = id.rawValue.uuid
    bytes.6 = bytes.6 & 0x0f | 0x80
    return UUID(uuid: bytes)
  }

  /// The same in SQL.
  static func subject(_ id: SQL) -> SQL { "overlay(\(id)::text PLACING '8' FROM 15 FOR 1)::uuid" }

  /// The `cause` of a notice about new rules of a time zone.
  static let zoneRules = "zone-rules"

  /// The columns of a notice, and who never gets it.
  struct Stored: Sendable {
    fileprivate typealias Members = [(StaticString, any JSONWritable)]

    let kind: Kind
    /// A recipient's notices about one subject arrive in order.
    let subject: UUID
    /// The user whom it names.
    let person: User.ID?
    /// Never a recipient.
    let actor: User.ID?
    let payload: JSONDocument

    /// - Parameters:
    ///   - actor: nil for the person.
    ///   - members: of the payload, after the type.
    fileprivate init(
      _ kind: Kind, about subject: UUID, naming person: User.ID? = nil, by actor: User.ID? = nil,
      _ members: Members, plusOnes: Int = 0
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

    /// About an event.
    ///
    /// - Parameters:
    ///   - ids: the members between those of event and title.
    ///   - rest: those after the title.
    fileprivate init(
      _ kind: Kind, _ event: Event.ID, _ title: String, naming person: User.ID? = nil, by actor: User.ID? = nil,
      ids: Members = [], _ rest: Members = [], plusOnes: Int = 0
    ) {
      var members: Members = [("eventId", event)]
      members += ids
      members.append(("title", title))
      members += rest
      self.init(kind, about: event.rawValue, naming: person, by: actor, members, plusOnes: plusOnes)
    }
  }

  /// Its columns. Each notice has them in one place.
  var stored: Stored {
    switch self {
    case .friendRequest(let id, let sender):
      Stored(
        .friendRequest, about: Self.subject(sender.id), naming: sender.id,
        [("userId", sender.id), ("requestId", id), ("actor", sender.displayName)])
    case .friendAccepted(let person):
      Stored(
        .friendAccepted, about: Self.subject(person.id), naming: person.id,
        [("userId", person.id), ("actor", person.displayName)])
    case .eventInvited(let event, let title, let host):
      Stored(
        .eventInvited, event, title, naming: host.id, ids: [("userId", host.id)], [("actor", host.displayName)])
    case .eventUpdated(let event, let title, let changes, let host):
      Stored(.eventUpdated, event, title, by: host, [("changes", changes)])
    case .eventKeptLocalTime(let event, let title, let changes):
      Stored(.eventUpdated, event, title, [("cause", Self.zoneRules), ("changes", changes)])
    case .eventCancelled(let event, let title, let host): Stored(.eventCancelled, event, title, by: host)
    case .invitationWithdrawn(let event, let title): Stored(.invitationWithdrawn, event, title)
    case .guestAnswered(let event, let title, let guest, let status, let plusOnes, let host):
      Stored(
        guest.user == nil ? .guestAnswered : .invitationAnswered, event, title, naming: guest.user, by: host,
        ids: [guest.member, ("status", status.rawValue)], [("actor", guest.name)],
        plusOnes: status == .declined ? 0 : plusOnes)
    case .waitlistPromoted(let event, let title, let guest, let plusOnes):
      Stored(.waitlistPromoted, event, title, ids: [("userId", guest)], plusOnes: plusOnes)
    case .guestPromoted(let event, let title, let guest, let plusOnes, let actor):
      Stored(
        .waitlistPromoted, event, title, naming: guest.user, by: actor, ids: [guest.member], [("actor", guest.name)],
        plusOnes: plusOnes)
    case .approvalRequested(let event, let title, let guest, let plusOnes):
      Stored(
        .approvalRequested, event, title, naming: guest.user,
        ids: guest.members, [("actor", guest.name)], plusOnes: plusOnes)
    case .guestsAnswered(let event, let title, let count, let pending, let guests):
      Stored(
        pending == count ? .approvalRequested : .guestAnswered, event, title,
        [("count", count), ("pending", pending), ("guests", guests)])
    case .eventReminder(let event, let title, let start):
      Stored(.eventReminder, event, title, [("start", start)])
    case .hostOffered(let event, let title, let offer, let creator):
      Stored(
        .hostOffered, event, title, naming: creator.id, ids: [("proposalId", offer), ("userId", creator.id)],
        [("actor", creator.displayName)])
    case .hostAdded(let event, let title, let host):
      Stored(.hostAdded, event, title, naming: host.id, ids: [("userId", host.id)], [("actor", host.displayName)])
    case .answerMerged(let event, let title, let status, let plusOnes):
      Stored(
        .answerMerged, event, title, ids: [("status", status.rawValue)], plusOnes: status == .declined ? 0 : plusOnes)
    case .answerProposed(let event, let title, let proposal, let status, let plusOnes):
      Stored(
        .answerProposed, event, title, ids: [("proposalId", proposal), ("status", status.rawValue)],
        plusOnes: status == .declined ? 0 : plusOnes)
    case .answerSet(let event, let title, let status, let host):
      Stored(
        .answerSet, event, title, naming: host.id, ids: [("userId", host.id), ("status", status.rawValue)],
        [("actor", host.displayName)])
    case .answerReminder(let event, let title, let host):
      Stored(
        .answerReminder, event, title, naming: host.id, ids: [("userId", host.id)], [("actor", host.displayName)])
    case .sessionRevoked(let session):
      Stored(.sessionRevoked, about: Self.subject(session), [("sessionId", session)])
    case .accountClaimed(let user, let left):
      Stored(
        .accountClaimed, about: Self.subject(user),
        [("friends", left.friends), ("events", left.events), ("links", left.links)])
    }
  }
}

extension Notice.FieldChange: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.fieldChange(new: new, old: old, field: Word(rawValue: field))
  }
}

extension Notice.NamedGuest {
  init(_ person: Person) {
    self.init(id: Guest.ID(person.id), user: person.id, name: person.displayName)
  }

  /// The members of a payload with all ids of the guest.
  fileprivate var members: Notice.Stored.Members {
    var members: Notice.Stored.Members = [("guestId", id)]
    if let user { members.append(("userId", user)) }
    return members
  }

  /// The member of a payload with one id of the guest.
  fileprivate var member: (StaticString, any JSONWritable) {
    if let user { ("userId", user) } else { ("guestId", id) }
  }
}

/// One of several visitors.
extension Notice.NamedGuest: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.namedGuest(name: name, guestId: id)
  }
}
