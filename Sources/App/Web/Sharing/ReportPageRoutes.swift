import HTTPTypes
import Hummingbird
import Postgres

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
