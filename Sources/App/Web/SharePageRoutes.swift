import Foundation
import HTTPServer
import Postgres

/// The pages of share links, for anyone who has the link.
struct SharePageRoutes {
  let dependencies: Dependencies

  private var database: Database { dependencies.database }
  private var tokens: VisitorTokens { dependencies.visitorTokens }

  /// Reads only: whatever fetches a page, such as a preview in a chat, changes nothing. Unknown query parameters are
  /// ignored, because sites that share a link may append their own.
  @Sendable func show(_ request: Request, _ context: Context) async throws -> Response {
    guard let (_, shared) = try await find(context) else { return try .page(.unknown, .notFound) }
    var page = shared.page(form(shared))
    page.reportURL = context.parameters.get("token").map { "\($0)/report" }
    return try .page(page, shared.isExpired ? .gone : .ok)
  }

  /// A visitor's answer. Sent twice, it is one answer. The response leads to the visitor's own page.
  @Sendable func answer(_ request: Request, _ context: Context) async throws -> Response {
    let fields = try await request.form()
    if request.isCrossSite { return try .page(.foreign, .forbidden) }
    guard let (link, shared) = try await find(context) else { return try .page(.unknown, .notFound) }
    guard let token = tokens.forms.read(fields.field("form")), token.link == link.id else {
      return try refuse(nil, shared, fields)
    }
    // A form that was sent already leads to its page, even if the event no longer takes answers.
    // So does one whose visitor is gone, and the page does not exist.
    let knownKid: String? = try await database.value(
      """
      SELECT kid FROM visitors WHERE id = \(token.visitor)
      UNION ALL
      SELECT \(tokens.page.kid) FROM spent_forms WHERE id = \(token.visitor)
      LIMIT 1
      """)
    guard let page = tokens.page.token(of: token.visitor, kid: knownKid ?? tokens.page.kid) else {
      throw AppError.linkNotFound
    }
    // A program that fills in the trap gets the same response, and the page does not exist.
    if !fields.field(AnswerForm.trap).isEmpty { return .toPage(page) }
    if knownKid != nil { return try await answerAgain(token.visitor, page, shared, fields) }
    guard !token.isExpired, shared.takesAnswers else { return try refuse(nil, shared, fields) }
    var form = AnswerForm(shared.link, token: fields.field("form"), mailsVisitors: dependencies.mailGate.mailsVisitors)
    form.fill(from: fields)
    guard let draft = form.draft() else { return try .page(shared.page(form), .unprocessableContent) }
    try dependencies.rateLimits.count(.visitors, of: .link(link.id), in: context)
    do {
      try await come(token.visitor, draft, by: link, to: shared, from: context.address)
    } catch let refusal as AppError where [.conflict, .forbidden, .invalid].contains(refusal.kind) {
      return try refuse(refusal, shared, fields)
    } catch let refusal as AppError where refusal.kind == .notFound {
      // The link was revoked meanwhile.
      return try .page(.unknown, .notFound)
    }
    return .toPage(page)
  }

  /// The form of a visitor who exists. Sent twice, it changes nothing. A reader who went back in the browser and changed
  /// the answer changes it as on the visitor's own page. Another name is another person, who gets a form of their own.
  private func answerAgain(
    _ id: Guest.ID, _ page: String, _ shared: SharedEvent, _ fields: JSON.Object
  ) async throws -> Response {
    var form = AnswerForm(shared.link, token: fields.field("form"), mailsVisitors: dependencies.mailGate.mailsVisitors)
    form.fill(from: fields)
    let row = try await database.first("SELECT \(Visitor.columns) FROM visitors AS v WHERE v.id = \(id)")
    guard let visitor = try row.map(Visitor.init(row:)) else { return .toPage(page) }
    guard let draft = form.draft() else { return try .page(shared.page(form), .unprocessableContent) }
    guard visitor.name == draft.name, draft.email == nil || draft.email?.key == visitor.email?.key else {
      return try refuse(.formSentBefore, shared, fields)
    }
    // Without the field, the link does not allow plus-ones.
    let plusOnes = fields["plusOnes"] == nil ? nil : draft.plusOnes
    if visitor.says(draft.answer, bringing: plusOnes) { return .toPage(page) }
    do {
      try await dependencies.change(at: [.event(shared.event)]) {
        try await Guest.answer(draft.answer, plusOnes: plusOnes, to: shared.event, by: id, as: .visitor, in: $0)
      }
    } catch let refusal as AppError where [.conflict, .invalid].contains(refusal.kind) {
      return try refuse(refusal, shared, fields)
    } catch let refusal as AppError where refusal.kind == .notFound {
      return try .page(.unknown, .notFound)
    }
    return .toPage(page)
  }

  private func come(
    _ id: Guest.ID, _ draft: Visitor.Draft, by link: (id: ShareLink.ID, kid: String), to shared: SharedEvent,
    from address: String
  ) async throws {
    let event = shared.event
    func come(_ decision: MailGate.Decision?) async throws {
      try await dependencies.change(at: [.event(event)]) {
        try await Visitor.come(id, draft, by: link, to: event, kid: tokens.page.kid, decision, in: $0)
      }
    }
    guard let email = draft.email else { return try await come(nil) }
    let attempt = MailGate.Attempt(
      id: id.rawValue, kind: .visitorConfirm, mailbox: Mailbox(email), origin: address, budget: .stranger,
      host: shared.creator)
    try await dependencies.mailGate.passing(attempt, in: database, come)
  }

  /// The page again, with what the reader has typed and a new token.
  ///
  /// - Parameter refusal: nil if the form's token has expired or is invalid.
  private func refuse(_ refusal: AppError?, _ shared: SharedEvent, _ fields: JSON.Object) throws -> Response {
    if shared.isExpired { return try .page(.expired, .gone) }
    guard shared.takesAnswers, var form = form(shared) else { return try .page(shared.page(nil), .conflict) }
    form.fill(from: fields)
    if let refusal { form.note(refusal) } else { form.noteExpiry() }
    return try .page(shared.page(form), .unprocessableContent)
  }

  private func form(_ shared: SharedEvent) -> AnswerForm? {
    tokens.forms.token(for: shared.link.id).map {
      AnswerForm(shared.link, token: $0, mailsVisitors: dependencies.mailGate.mailsVisitors)
    }
  }

  /// A guess costs no read.
  private func find(
    _ context: Context
  ) async throws -> (link: (id: ShareLink.ID, kid: String), shared: SharedEvent)? {
    guard let link = dependencies.linkTokens.read(context.parameters.get("token") ?? ""),
      let shared = try await SharedEvent.find(link, zones: dependencies.zones, in: database)
    else { return nil }
    return (link, shared)
  }
}

extension AppError {
  fileprivate static let formSentBefore = AppError(
    .conflict, "form-sent-before",
    "This form was already sent, with another name or address. To answer for someone else, send it again. To change the "
      + "first answer, open the page that it led to.")
}
