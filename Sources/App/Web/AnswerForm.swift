import Foundation
import Postgres

/// The form for an answer: on the page of a share link, or, without name and address, on a visitor's own page. A form
/// that is refused comes back with what the reader has typed.
struct AnswerForm: Sendable {
  /// The name of the honeypot: a field that people do not see, and that bots fill in.
  static let trap = "website"
  static let longestName = 100
  private static let longestNumber = 10

  /// Of the share link's form; nil on a visitor's own page.
  var token: String?
  /// Whether the form asks for an address. Nil on a visitor's own page.
  var asksForEmail: ShareLink.Email?
  let maxPlusOnes: Int
  private var mailsVisitors = true
  var needsApproval = false
  private var name = ""
  private var answer = ""
  private var plusOnes = ""
  private var email = ""
  /// By field. The empty field stands for the whole form.
  private(set) var errors: [(field: String, message: String)] = []

  /// The form of a share link.
  ///
  /// - Parameter mailsVisitors: if false, the form asks for no address.
  init(_ link: ShareLink, token: String?, mailsVisitors: Bool) {
    self.token = token
    self.mailsVisitors = mailsVisitors
    asksForEmail = mailsVisitors ? link.settings.email : ShareLink.Email.none
    maxPlusOnes = link.settings.maxPlusOnes
    needsApproval = link.settings.approval
  }

  /// The form of a visitor's own page.
  init(of visitor: Visitor, maxPlusOnes: Int) {
    self.maxPlusOnes = maxPlusOnes
    answer = visitor.party.answer.rawValue
    plusOnes = "\(min(visitor.party.plusOnes, maxPlusOnes))"
  }

  /// Takes over what the reader has typed.
  mutating func fill(from fields: JSON.Object) {
    (name, answer) = (fields.field("name"), fields.field("answer"))
    (plusOnes, email) = (fields.field("plusOnes"), fields.field("email"))
  }

  /// - Returns: nil if a field breaks its rule. Then the form has the errors.
  mutating func draft() -> Visitor.Draft? {
    var members = JSON.Object()
    let typed: [(String, JSON)] = [
      ("name", name.isEmpty ? .null : .string(name)), ("answer", answer.isEmpty ? .null : .string(answer)),
      ("plusOnes", plusOnes.isEmpty ? .null : .number(plusOnes)), ("email", email.isEmpty ? .null : .string(email)),
    ]
    for (name, value) in typed { _ = members.insert(value, forKey: name) }
    var rules = Fields(members)
    let draft = Visitor.Draft(
      name: token == nil ? "" : rules.required("name", .line(1...Self.longestName)),
      answer: rules.required("answer", .word(of: Invitation.Status.possibleAnswers)),
      plusOnes: rules.optional("plusOnes", .integer(0...maxPlusOnes)) ?? 0, email: emailRead(from: &rules),
      needsEmail: mailsVisitors)
    for error in rules.errors { note(error) }
    return errors.isEmpty ? draft : nil
  }

  private func emailRead(from rules: inout Fields) -> EmailAddress? {
    switch asksForEmail {
    case .required: rules.required("email", .email)
    case .optional: rules.optional("email", .email)
    case .some(.none), nil: nil
    }
  }

  /// Records why the service refuses the form.
  mutating func note(_ refusal: AppError) {
    if refusal.fields.isEmpty { errors.append(("", refusal.message)) }
    for error in refusal.fields { note(error) }
  }

  mutating func noteExpiry() {
    errors.append(("", "This form was open for too long. Check your answer, then send it again."))
  }

  private mutating func note(_ error: FieldError) {
    if error.field == "answer" { return errors.append(("answer", "Choose one of the three answers.")) }
    let subject =
      switch error.field {
      case "name": "Your name"
      case "email": "The e-mail address"
      case "plusOnes": "The number of people"
      default: "Your answer"
      }
    errors.append((error.field, "\(subject) \(error.message)."))
  }

  // MARK: Showing

  /// Dictionaries for `share.mustache`, in which a name that is nil is absent.
  var contents: [String: Any] {
    var form: [String: Any] = [
      "choices": choices,
      "errors": errors.map { ["target": $0.field.isEmpty ? "answer" : $0.field, "what": $0.message] },
      "hasErrors": !errors.isEmpty, "button": token == nil ? "Change my answer" : "Send my answer",
    ]
    form["answerError"] = error(of: "answer")
    form["form"] = token
    if maxPlusOnes > 0 {
      form["plusOnesField"] = field("plusOnes", plusOnes, atMost: Self.longestNumber, ["most": "\(maxPlusOnes)"])
    }
    guard token != nil else { return form }
    form["trap"] = Self.trap
    form["nameField"] = field("name", name, atMost: Self.longestName, ["most": "\(Self.longestName)"])
    if needsApproval { form["approval"] = "A host must approve your answer first." }
    if let asksForEmail, asksForEmail != .none {
      form["emailField"] = field(
        "email", email, atMost: EmailAddress.maximumLength, ["isRequired": asksForEmail == .required])
    }
    return form
  }

  private func error(of field: String) -> String? { errors.first { $0.field == field }?.message }

  /// - Parameter length: in characters of the trimmed text in NFC. Longer text comes back without its end, so that the
  ///   page stays small.
  private func field(_ name: String, _ value: String, atMost length: Int, _ more: [String: Any]) -> [String: Any] {
    let trimmed = value.trimmedScalars
    let isBounded = trimmed.utf8.count <= length * String.maximumBytesOfComposed && !trimmed.hasLongRunOfMarks
    let text = isBounded ? String(trimmed).precomposedStringWithCanonicalMapping : String(trimmed)
    let shown = String(text.unicodeScalars.prefix(length))
    var members: [String: Any] = ["typed": shown.withoutDirectionControls]
    members["error"] = error(of: name)
    return members.merging(more) { $1 }
  }

  private var choices: [[String: Any]] {
    let words = ["going": "Yes, I am going", "maybe": "Maybe", "declined": "No, I cannot come"]
    return Invitation.Status.possibleAnswers.map { choice in
      ["choice": choice.rawValue, "words": words[choice.rawValue] ?? "", "isChosen": choice.rawValue == answer]
    }
  }
}
