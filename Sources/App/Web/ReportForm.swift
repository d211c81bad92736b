import Foundation
import HTTPServer
import Postgres

/// The form that reports the event of a share link to the operators.
struct ReportForm: Sendable {
  /// Makes a form that is sent twice one report.
  let token: String
  private var reason = ""
  private var text = ""
  private var errors: [(field: String, message: String)] = []

  init(token: String) {
    self.token = token
  }

  /// Takes over what the reader has typed.
  mutating func fill(from fields: JSON.Object) {
    reason = fields.field("reason")
    // Browsers send two characters for each line break.
    text = String(String.UnicodeScalarView(fields.field("text").unicodeScalars.filter { $0 != "\r" }))
  }

  /// - Returns: nil if a field breaks its rule. Then the form has the errors.
  mutating func draft() -> (reason: Report.Reason, text: String?)? {
    var members = JSON.Object()
    _ = members.insert(reason.isEmpty ? .null : .string(reason), forKey: "reason")
    _ = members.insert(text.isEmpty ? .null : .string(text), forKey: "text")
    var rules = Fields(members)
    let draft = (
      reason: rules.required(Body.ReportDraft.reason), text: rules.optional(Body.ReportDraft.text)
    )
    for error in rules.errors {
      errors.append(
        error.field == "reason"
          ? ("reason", "Choose a reason.") : (error.field, "Your words \(error.message)."))
    }
    return errors.isEmpty ? draft : nil
  }

  mutating func noteExpiry() {
    errors.append(("reason", "This form was open for too long. Send it again."))
  }

  /// Dictionaries for `share.mustache`, in which a name that is nil is absent.
  var contents: [String: Any] {
    let shown = String(String(text.trimmedScalars).unicodeScalars.prefix(Report.maximumText))
    var form: [String: Any] = [
      "reportToken": token, "trap": AnswerForm.trap, "reasons": reasons, "reportText": shown.withoutDirectionControls,
      "mostText": "\(Report.maximumText)", "hasReportErrors": !errors.isEmpty,
      "reportErrors": errors.map { ["target": $0.field, "what": $0.message] },
    ]
    form["reasonError"] = errors.first { $0.field == "reason" }?.message
    form["textError"] = errors.first { $0.field == "text" }?.message
    return form
  }

  private var reasons: [[String: Any]] {
    Report.Reason.allCases.map { each in
      ["reason": each.rawValue, "words": each.words, "isChosen": each.rawValue == reason]
    }
  }
}

extension Report.Reason {
  fileprivate var words: String {
    switch self {
    case .spam: "Advertisements or fraud"
    case .harassment: "Harassment"
    case .hate: "Hate"
    case .violence: "Violence"
    case .nudity: "Nudity"
    case .impersonation: "Someone pretends to be another person"
    case .other: "Something else"
    }
  }
}

extension SharePage {
  private static let reportTitle = "Report this event"

  /// - Parameter token: of the share link, to return to its page.
  static func reporting(_ form: ReportForm, back token: String) -> SharePage {
    var page = SharePage(
      title: reportTitle,
      text: "Your report goes to the people who run this service. The hosts of the event do not see it.")
    page.report = form
    page.back = "../\(token)"
    return page
  }

  /// The same whether the report is new, a repeated one, or one too many.
  static let reported = SharePage(
    title: "Thank you for your report",
    text: "The people who run this service will look at it. You can close this page.")
}

/// The form of a share link's page that reports the event, for anyone who has the link.
struct ReportPageRoutes {
  let dependencies: Dependencies

  private var database: Database { dependencies.database }
  private var forms: FormTokens { dependencies.visitorTokens.forms }

  @Sendable func show(_ request: Request, _ context: Context) async throws -> Response {
    guard let (link, _) = try await find(context) else { return try .page(.unknown, .notFound) }
    return try .page(try page(newForm(for: link), context))
  }

  /// Files a report. All reports of an event that the link leads to get the same response.
  @Sendable func report(_ request: Request, _ context: Context) async throws -> Response {
    let fields = try await request.form()
    if request.isCrossSite { return try .page(.foreign, .forbidden) }
    guard let (link, event) = try await find(context) else { return try .page(.unknown, .notFound) }
    guard let token = forms.read(fields.field("form")), token.link == link, !token.isExpired else {
      var form = try newForm(for: link)
      form.fill(from: fields)
      form.noteExpiry()
      return try .page(page(form, context), .unprocessableContent)
    }
    guard fields.field(AnswerForm.trap).isEmpty else { return try .page(.reported) }
    var form = ReportForm(token: fields.field("form"))
    form.fill(from: fields)
    guard let (reason, text) = form.draft() else { return try .page(page(form, context), .unprocessableContent) }
    let owner: User.ID? = try await database.value("SELECT creator_id FROM events WHERE id = \(event)")
    try await dependencies.change(at: owner.map { [.user($0)] } ?? []) {
      let id = Report.ID(rawValue: token.visitor.rawValue)
      try await Report.file(id, by: link, of: event, reason, text, in: $0)
    }
    return try .page(.reported)
  }

  private func newForm(for link: ShareLink.ID) throws -> ReportForm {
    guard let token = forms.token(for: link) else { throw AppError.linkNotFound }
    return ReportForm(token: token)
  }

  private func page(_ form: ReportForm, _ context: Context) -> SharePage {
    .reporting(form, back: context.parameters.get("token") ?? "")
  }

  /// Expired links, and those to archived events, can also be reported. A guess costs no read.
  private func find(_ context: Context) async throws -> (link: ShareLink.ID, event: Event.ID)? {
    guard let token = dependencies.linkTokens.read(context.parameters.get("token") ?? "") else { return nil }
    do {
      return (token.id, try await ShareLink.event(of: token, in: database))
    } catch let error as AppError where error == .linkNotFound {
      return nil
    }
  }
}
