import Foundation
import Postgres

/// One thing that happened, as its recipients will be told: the type that clients switch on, a sentence fit for a lock
/// screen, and the ids to open the right screen with.
struct Notice: Sendable {
  /// Its types, named as on the wire and in the database.
  enum Kind: String, CaseIterable, Sendable, SQLValue {
    case friendRequest = "friend-request"
    case friendAccepted = "friend-accepted"
    case eventInvited = "event-invited"
    case eventUpdated = "event-updated"
    case eventCancelled = "event-cancelled"
    case invitationAnswered = "invitation-answered"
    case waitlistPromoted = "waitlist-promoted"
    case eventReminder = "event-reminder"
    case sessionRevoked = "session-revoked"

    /// Those that somebody may turn off. Of a theft everybody is told: whoever stole a token could else see to it that
    /// they are not.
    static let optional = allCases.filter { $0 != .sessionRevoked }
  }

  let type: String
  /// What it is about. One recipient's notices about one subject are delivered in order.
  let subject: UUID
  let payload: JSONDocument

  private init(
    _ kind: Kind, about subject: UUID, _ message: String, _ members: [(StaticString, any JSONWritable)]
  ) {
    type = kind.rawValue
    self.subject = subject
    var json = JSONWriter()
    json.object {
      $0.member("type", kind.rawValue)
      $0.member("message", message)
      for (name, value) in members { $0.member(name, value) }
    }
    payload = JSONDocument(json.text)
  }

  static func friendRequest(_ id: FriendRequest.ID, from sender: Person) -> Notice {
    Notice(
      .friendRequest, about: sender.id.rawValue, "\(sender.displayName) wants to be friends.",
      [("userId", sender.id), ("requestId", id)])
  }

  static func friendAccepted(by person: Person) -> Notice {
    Notice(
      .friendAccepted, about: person.id.rawValue, "\(person.displayName) and you are friends now.",
      [("userId", person.id)])
  }

  static func eventInvited(_ event: Event.ID, _ title: String, by host: Person) -> Notice {
    Notice(
      .eventInvited, about: event.rawValue, "\(host.displayName) invited you to “\(title)”.",
      [("eventId", event), ("userId", host.id)])
  }

  static func eventUpdated(_ event: Event.ID, _ title: String, changes: [(field: String, word: String)]) -> Notice {
    Notice(
      .eventUpdated, about: event.rawValue,
      "“\(title)” has changed: \(changes.map(\.word).joined(separator: ", ")).",
      [("eventId", event), ("changes", changes.map(\.field))])
  }

  /// Names nobody: its reason may be that the creator's account is gone.
  static func eventCancelled(_ event: Event.ID, _ title: String) -> Notice {
    Notice(.eventCancelled, about: event.rawValue, "“\(title)” was cancelled.", [("eventId", event)])
  }

  /// To one guest, for whom the event is as good as cancelled.
  static func invitationWithdrawn(_ event: Event.ID, _ title: String) -> Notice {
    Notice(
      .eventCancelled, about: event.rawValue, "You are no longer invited to “\(title)”.", [("eventId", event)])
  }

  static func invitationAnswered(
    _ event: Event.ID, _ title: String, by guest: Person, _ status: Invitation.Status
  ) -> Notice {
    let answer =
      switch status {
      case .going: "is going to"
      case .maybe: "may come to"
      case .waitlisted: "is on the waiting list of"
      case .declined, .invited: "cannot come to"
      }
    return Notice(
      .invitationAnswered, about: event.rawValue, "\(guest.displayName) \(answer) “\(title)”.",
      [("eventId", event), ("userId", guest.id), ("status", status.rawValue)])
  }

  static func waitlistPromoted(_ event: Event.ID, _ title: String) -> Notice {
    Notice(
      .waitlistPromoted, about: event.rawValue, "A place has become free: you are going to “\(title)”.",
      [("eventId", event)])
  }

  /// - Parameter start: of the event, which is to come.
  static func eventReminder(_ event: Event.ID, _ title: String, start: Timestamp, now: Timestamp = .now()) -> Notice {
    // Told late, it does not tell of an hour.
    let time = start < now.adding(seconds: 50 * 60) ? "soon" : "in an hour"
    return Notice(.eventReminder, about: event.rawValue, "“\(title)” starts \(time).", [("eventId", event)])
  }

  static func sessionRevoked(_ session: Session.ID) -> Notice {
    Notice(
      .sessionRevoked, about: session.rawValue,
      "One of your sessions was ended, because a copy of its token was used. Change your password if it was not you.",
      [("sessionId", session)])
  }
}

extension Notice {
  /// Several updates of one event, oldest first, as one: what has changed by any of them, told as the newest tells it.
  ///
  /// - Returns: nil if one of them is not as this release writes it.
  static func merged(_ updates: [JSONDocument]) -> JSONDocument? {
    let words = Dictionary(uniqueKeysWithValues: Event.Plan.parts.map { ($0.field, $0.word) })
    var changes: [(field: String, word: String)] = []
    var newest: JSON.Object = [:]
    for update in updates {
      guard case .object(let members)? = try? JSON(parsing: update.text.utf8),
        case .array(let fields)? = members["changes"]
      else { return nil }
      newest = members
      for case .string(let field) in fields where !changes.contains(where: { $0.field == field }) {
        guard let word = words[field] else { return nil }
        changes.append((field, word))
      }
    }
    // Nothing that stands behind a title looks like this, but a title may.
    guard case .string(let message)? = newest["message"], case .string(let event)? = newest["eventId"],
      let id = Event.ID(event), let end = message.range(of: "” has changed: ", options: .backwards),
      message.first == "“"
    else { return nil }
    return eventUpdated(id, String(message[..<end.lowerBound].dropFirst()), changes: changes).payload
  }
}
