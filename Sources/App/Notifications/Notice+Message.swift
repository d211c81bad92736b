import Foundation
import Postgres

/// The sentences of notices, composed when they are sent or read.
extension Notice {
  /// In seconds. A reminder that is sent closer to the start than this does not claim that an hour is left.
  private static let onTime = 50 * 60

  /// A stored payload as clients get it: with its sentence, suitable for a lock screen, as `message`.
  ///
  /// - Parameter time: when it is sent. An inbox passes the time of the change, so that its items do not depend on the
  ///   clock.
  static func rendered(_ payload: JSONDocument, at time: Timestamp) -> JSONDocument {
    guard case .object(let members)? = try? JSON(parsing: payload.text.utf8), let message = message(members, at: time)
    else { return payload }
    var json = JSONWriter()
    json.object {
      $0.member("message", message)
      $0.raw(",")
      $0.raw(payload.text.utf8.dropFirst().dropLast())
    }
    return JSONDocument(json.text)
  }

  private static func message(_ members: JSON.Object, at time: Timestamp) -> String? {
    func text(_ name: String) -> String {
      if case .string(let text)? = members[name] { text } else { "" }
    }
    let (actor, title) = (text("actor"), "“\(text("title"))”")
    return switch Kind(rawValue: text("type")) {
    case .friendRequest: "\(actor) wants to be friends."
    case .friendAccepted: "You and \(actor) are now friends."
    case .eventInvited: "\(actor) invited you to \(title)."
    case .eventUpdated: "\(title) has changed: \(words(for: members["changes"]))."
    case .eventCancelled: "\(title) was cancelled."
    case .invitationWithdrawn: "You are no longer invited to \(title)."
    case .invitationAnswered: "\(actor) \(verb(for: text("status"))) \(title)."
    case .waitlistPromoted where members["actor"] != nil: "\(actor) got a free place and is going to \(title)."
    case .waitlistPromoted: "A place opened up. You are now going to \(title)."
    case .eventReminder: "\(title) starts \(isAnHourAhead(text("start"), of: time) ? "in an hour" : "soon")."
    case .sessionRevoked:
      "One of your sessions was ended because an old token was used. If this was not you, change your password."
    case nil: nil
    }
  }

  private static func verb(for status: String) -> String {
    switch Invitation.Status(rawValue: status) {
    case .going: "is going to"
    case .maybe: "may come to"
    case .waitlisted: "is on the waiting list of"
    case .declined, .invited, nil: "cannot come to"
    }
  }

  private static func words(for changes: JSON?) -> String {
    guard case .array(let changes)? = changes else { return "" }
    return changes.compactMap { change in
      guard case .object(let members) = change, case .string(let field)? = members["field"] else { return nil }
      return Event.Plan.parts.first { $0.field == field }?.word ?? field
    }.joined(separator: ", ")
  }

  private static func isAnHourAhead(_ start: String, of time: Timestamp) -> Bool {
    Timestamp(rfc3339: start).map { $0 >= time.adding(seconds: onTime) } ?? false
  }
}
