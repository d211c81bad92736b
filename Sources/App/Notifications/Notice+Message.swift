import Foundation
import Postgres

/// The sentences of notices, composed when they are sent or read.
extension Notice {
  /// In seconds. A reminder that is sent closer to the start than this does not claim that an hour is left.
  private static let onTime = 50 * 60

  /// A stored payload as clients get it: with its sentence, suitable for a lock screen, as `message`, and with `locKey`
  /// and `locArgs`, from which an app writes the sentence in another language.
  ///
  /// - Parameter time: when it is sent. An inbox passes the time of the change, so that its items do not depend on the
  ///   clock.
  static func rendered(_ payload: JSONDocument, at time: Timestamp) -> JSONDocument {
    guard case .object(let members)? = try? JSON(parsing: payload.text.utf8),
      case .string(let type)? = members["type"], let sentence = Self.sentence(of: type, members, at: time)
    else { return payload }
    var json = JSONWriter()
    json.notificationContent(
      message: sentence.text, locKey: sentence.key(ofType: type), locArgs: sentence.args, payload: payload)
    return JSONDocument(json.text)
  }

  private static func sentence(of type: String, _ members: JSON.Object, at time: Timestamp) -> Sentence? {
    func text(_ name: String) -> String {
      if case .string(let text)? = members[name] { text } else { "" }
    }
    let (actor, title): (String, Sentence) = (text("actor"), "“\(text("title"))”")
    let plusOnes = members["plusOnes"]
    return switch Kind(rawValue: type) {
    case .friendRequest: "\(actor) wants to be friends."
    case .friendAccepted: "You and \(actor) are now friends."
    case .eventInvited: "\(actor) invited you to \(title)."
    case .eventUpdated where text("cause") == zoneRules:
      Sentence("The rules of its time zone have changed, and \(title) keeps its local time.", variant: zoneRules)
    case .eventUpdated: "\(title) has changed: \(words(for: members["changes"]))."
    case .eventCancelled: "\(title) was cancelled."
    case .invitationWithdrawn: "You are no longer invited to \(title)."
    case .guestAnswered where members["count"] != nil: several(members, "answered", title)
    case .approvalRequested where members["count"] != nil: several(members, "ask to come to", title)
    case .invitationAnswered, .guestAnswered: party("\(actor) \(verb(for: text("status"))) \(title)", with: plusOnes)
    case .waitlistPromoted where members["actor"] != nil:
      party(Sentence("\(actor) got a free place and is going to \(title)", variant: "host"), with: plusOnes)
    case .waitlistPromoted: party("A place opened up. You are now going to \(title)", with: plusOnes)
    case .eventReminder: "\(title) starts \(isAnHourAhead(text("start"), of: time) ? inAnHour : soon)."
    case .hostOffered: "\(actor) wants you as a host of \(title)."
    case .hostAdded: "\(actor) is now a host of \(title)."
    case .answerMerged:
      party(
        "The answer with your e-mail address is now yours: you \(yourVerb(for: text("status"))) \(title)",
        with: plusOnes)
    case .answerProposed:
      party(
        "Is this your answer? With your e-mail address, you \(yourVerb(for: text("status"))) \(title)", with: plusOnes)
    case .answerSet: "\(actor) says you \(yourVerb(for: text("status"))) \(title)."
    case .answerReminder: "\(actor) asks for your answer to \(title)."
    case .approvalRequested: party("\(actor) asks to come to \(title)", with: plusOnes)
    case .sessionRevoked:
      "One of your sessions was ended because an old token was used. If this was not you, change your password."
    case .accountClaimed:
      "This account is yours. Someone else may have used it before: check its friends, events and links."
    case nil: nil
    }
  }

  /// The end of a sentence about a guest: the people whom the guest brings. They make a variant of each variant.
  private static func party(_ sentence: Sentence, with plusOnes: JSON?) -> Sentence {
    guard case .number(let number)? = plusOnes else { return "\(sentence)." }
    let variant = { (name: String) in sentence.variant.map { "\($0).\(name)" } ?? name }
    return number == "1"
      ? Sentence("\(sentence), with 1 other.", variant: variant("plus-one"))
      : Sentence("\(sentence), with \(number) others.", variant: variant("plus-ones"))
  }

  /// A sentence about several visitors, the first of whom is named. No one is, once their data is erased.
  private static func several(_ members: JSON.Object, _ verb: Sentence, _ title: Sentence) -> Sentence {
    guard case .number(let number)? = members["count"], let count = Int(number) else { return "" }
    let others = String(count - 1)
    guard case .array(let guests)? = members["guests"], case .object(let first)? = guests.first,
      case .string(let name)? = first["name"]
    else { return Sentence("\(number) visitors \(verb) \(title).", variant: "unnamed") }
    return count == 2
      ? Sentence("\(name) and 1 other \(verb) \(title).", variant: "two")
      : Sentence("\(name) and \(others) others \(verb) \(title).", variant: "several")
  }

  private static let inAnHour = Sentence("in an hour", variant: "hour")
  private static let soon = Sentence("soon", variant: "soon")

  private static func verb(for status: String) -> Sentence {
    switch Invitation.Status(rawValue: status) {
    case .going: Sentence("is going to", variant: "going")
    case .maybe: Sentence("may come to", variant: "maybe")
    case .waitlisted: Sentence("is on the waiting list of", variant: "waitlisted")
    case .declined, .invited, .pending, nil: Sentence("cannot come to", variant: "declined")
    }
  }

  private static func yourVerb(for status: String) -> Sentence {
    switch Invitation.Status(rawValue: status) {
    case .going: Sentence("are going to", variant: "going")
    case .maybe: Sentence("may come to", variant: "maybe")
    case .waitlisted: Sentence("are on the waiting list of", variant: "waitlisted")
    case .declined, .invited, .pending, nil: Sentence("cannot come to", variant: "declined")
    }
  }

  /// A single field is a variant, so that it can be translated. Several are one argument.
  private static func words(for changes: JSON?) -> Sentence {
    guard case .array(let changes)? = changes else { return "" }
    let fields = changes.compactMap { change -> String? in
      guard case .object(let members) = change, case .string(let field)? = members["field"] else { return nil }
      return field
    }
    func word(_ field: String) -> String? { Event.Plan.fields.first { $0.setting.name == field }?.word }
    if fields.count == 1, let only = word(fields[0]) {
      return Sentence(Sentence(stringLiteral: only), variant: fields[0])
    }
    return "\(fields.map { word($0) ?? $0 }.joined(separator: ", "))"
  }

  private static func isAnHourAhead(_ start: String, of time: Timestamp) -> Bool {
    Timestamp(rfc3339: start).map { $0 >= time.adding(seconds: onTime) } ?? false
  }
}
