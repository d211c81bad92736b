import Foundation
import HTTPServer
import Postgres

/// The pages of visitors, for those who have the link: the visitor, after sending the form of a share link or by mail.
/// Only POST writes. The request needs no cookie, and its `Origin` says nothing: under `no-referrer` it is `null`.
/// `Sec-Fetch-Site` does, in browsers that send it: another site's page cannot send these forms.
struct VisitorPageRoutes {
  let dependencies: Dependencies

  private var database: Database { dependencies.database }
  private var tokens: VisitorTokens { dependencies.visitorTokens }

  @Sendable func show(_ request: Request, _ context: Context) async throws -> Response {
    guard let (token, visited) = try await find(context) else { return try .page(.unknown, .notFound) }
    return try .page(page(visited, token))
  }

  /// A visitor's actions on the page.
  private enum Act: String {
    case answer, withdraw, confirm, unsubscribe, erase
    case askToErase = "ask-to-erase"
    /// Erases the answer of a reader of the address's mail who has not given it.
    case notMe = "not-me"
    case sendAgain = "send-again"
  }

  @Sendable func act(_ request: Request, _ context: Context) async throws -> Response {
    let fields = try await request.form()
    if request.isCrossSite { return try .page(.foreign, .forbidden) }
    do {
      return try await act(fields, context)
    } catch let refusal as AppError where refusal.kind == .notFound {
      // The visitor's data was erased or merged into an account meanwhile.
      let erases = [Act.erase.rawValue, Act.notMe.rawValue].contains(fields.field("do"))
      return try erases ? .page(.erased) : .page(.unknown, .notFound)
    }
  }

  private func act(_ fields: JSON.Object, _ context: Context) async throws -> Response {
    guard let (token, visited) = try await find(context) else { return try .page(.unknown, .notFound) }
    let (id, event) = (visited.visitor.id, visited.visitor.event)
    switch Act(rawValue: fields.field("do")) {
    case .answer, nil:
      var form = visited.form
      form.fill(from: fields)
      guard visited.takesAnswers, let draft = form.draft() else {
        return try .page(page(visited, token, form), visited.takesAnswers ? .unprocessableContent : .conflict)
      }
      // Without the field, the event does not allow plus-ones.
      let plusOnes = fields["plusOnes"] == nil ? nil : draft.plusOnes
      return try await answer(draft.answer, plusOnes, visited, token, form, context)
    case .withdraw:
      return try await answer(.declined, nil, visited, token, visited.form, context)
    case .confirm:
      // Only a link from a mail shows that its reader owns the address.
      guard tokens.isMailed(token, to: visited.visitor) else { return try .page(page(visited, token), .forbidden) }
      try await dependencies.change(at: [.event(event)]) { try await Visitor.confirm(id, at: event, in: $0) }
    case .sendAgain: try await sendAgain(to: visited, fields, context)
    case .unsubscribe:
      try await dependencies.change(at: []) { try Visitor.unsubscribe(id, in: $0) }
    case .askToErase: return try .page(.erasing(context.parameters.get("token") ?? ""))
    case .notMe:
      // Afterwards, the answer belongs to the account with the address, or is the visitor's own to erase.
      guard tokens.isMailed(token, to: visited.visitor), !visited.visitor.isConfirmed else {
        return try .page(page(visited, token), .forbidden)
      }
      try await dependencies.change(at: [.event(event)]) { try await Visitor.erase(id, at: event, in: $0) }
      return try .page(.notMine)
    case .erase:
      try await dependencies.change(at: [.event(event)]) { try await Visitor.erase(id, at: event, in: $0) }
      return try .page(.erased)
    }
    return .toPage(context.parameters.get("token") ?? "")
  }

  /// Asks the gate for one more mail to an address that no one has confirmed. A form that is sent twice asks once.
  private func sendAgain(to visited: VisitedEvent, _ fields: JSON.Object, _ context: Context) async throws {
    let (visitor, asked) = (visited.visitor, visited.mailsAsked)
    guard visited.isUnconfirmed, let email = visitor.email, fields.field("asked") == "\(asked)" else { return }
    func ask(_ decision: MailGate.Decision) async throws {
      try await dependencies.change(at: [.event(visitor.event)]) {
        try await Visitor.askAgain(visitor.id, at: visitor.event, after: asked, decision, in: $0)
      }
    }
    // The link takes no more answers, so no host causes a mail.
    guard let host = visited.creator else { return try await ask(.held(.host)) }
    let attempt = MailGate.Attempt(
      id: visitor.id.rawValue, ordinal: asked + 1, kind: .visitorConfirm, mailbox: Mailbox(email),
      origin: context.address, budget: .stranger, host: host)
    try await dependencies.mailGate.passing(attempt, in: database, ask)
  }

  private func answer(
    _ answer: Invitation.Status, _ plusOnes: Int?, _ visited: VisitedEvent, _ token: VisitorTokens.PageToken,
    _ form: AnswerForm, _ context: Context
  ) async throws -> Response {
    do {
      try await dependencies.change(at: [.event(visited.visitor.event)]) {
        try await Guest.answer(
          answer, plusOnes: plusOnes, to: visited.visitor.event, by: visited.visitor.id, as: .visitor, in: $0)
      }
    } catch let refusal as AppError where [.conflict, .invalid].contains(refusal.kind) {
      var form = form
      form.note(refusal)
      return try .page(page(visited, token, form), .unprocessableContent)
    }
    return .toPage(context.parameters.get("token") ?? "")
  }

  // MARK: Mails

  /// A page with a button, for readers who open the link: a GET changes nothing.
  @Sendable func showUnsubscribing(_ request: Request, _ context: Context) async throws -> Response {
    guard let (_, visited) = try await find(context) else { return try .page(.unknown, .notFound) }
    return try .page(visited.visitor.isUnsubscribed ? .unsubscribed : .unsubscribing)
  }

  /// For mail programs, which send `List-Unsubscribe=One-Click` (RFC 8058), and for the button. The body says nothing
  /// more, and its type is not checked. The response is a page: mail programs follow no redirect.
  @Sendable func unsubscribe(_ request: Request, _ context: Context) async throws -> Response {
    _ = try await request.bytes(upTo: Request.maximumForm, else: .formTooLarge)
    if request.isCrossSite { return try .page(.foreign, .forbidden) }
    guard let (_, visited) = try await find(context) else { return try .page(.unknown, .notFound) }
    try await dependencies.change(at: []) { try Visitor.unsubscribe(visited.visitor.id, in: $0) }
    return try .page(.unsubscribed)
  }

  /// A page with a button, as ``showUnsubscribing``, for an address that no one has proven.
  @Sendable func showOptingOut(_ request: Request, _ context: Context) async throws -> Response {
    let token = context.parameters.get("token") ?? ""
    return try dependencies.mailGate.optOuts.keys.mailbox(inToken: token) == nil
      ? .page(.unknown, .notFound) : .page(.optingOut)
  }

  /// As ``unsubscribe``, for all mails to an address that anyone can cause. The page's button takes it back: only a
  /// reader of the address's mail has the link.
  @Sendable func optOut(_ request: Request, _ context: Context) async throws -> Response {
    let body = try await request.bytes(upTo: Request.maximumForm, else: .formTooLarge)
    if request.isCrossSite { return try .page(.foreign, .forbidden) }
    let optOuts = dependencies.mailGate.optOuts
    guard let mailbox = optOuts.keys.mailbox(inToken: context.parameters.get("token") ?? "") else {
      return try .page(.unknown, .notFound)
    }
    if JSON.Object(form: Array(body.readableBytesView))?.field("do") == "allow" {
      try await optOuts.remove(mailbox, in: database)
      return try .page(.allowed)
    }
    try await optOuts.add(mailbox, in: database)
    return try .page(.optedOut)
  }

  // MARK: Calendar

  /// The event for calendars, which read it again and again. Its token cannot change the answer.
  @Sendable func calendar(_ request: Request, _ context: Context) async throws -> Response {
    let file = context.parameters.get("file") ?? ""
    guard file.hasSuffix(".ics"), let token = tokens.calendar.read(String(file.dropLast(4))),
      let calendar = try await VisitorCalendar.find(token, zones: dependencies.zones, in: database)
    else { throw AppError.calendarLinkNotFound }
    var headers: HTTPFields = [.eTag: calendar.eTag, .cacheControl: "private, no-cache"]
    if request.alreadyHas(calendar.eTag) { return Response(status: .notModified, headers: headers) }
    headers[.contentType] = "text/calendar; charset=utf-8"
    return Response(
      status: .ok, headers: headers, body: ResponseBody(ByteBuffer(bytes: calendar.bytes)))
  }

  // MARK: Reading

  private func page(
    _ visited: VisitedEvent, _ token: VisitorTokens.PageToken, _ form: AnswerForm? = nil
  ) -> SharePage {
    let visitor = visited.visitor
    let file = tokens.calendar.token(of: visitor.id, kid: visitor.kid)
    return visited.page(
      form, isMailed: tokens.isMailed(token, to: visitor), calendar: file.map { "../calendars/visitors/\($0).ics" },
      eventRetention: dependencies.eventRetention)
  }

  /// A guess costs no read.
  private func find(
    _ context: Context
  ) async throws -> (token: VisitorTokens.PageToken, visited: VisitedEvent)? {
    guard let token = tokens.read(context.parameters.get("token") ?? ""),
      let visited = try await VisitedEvent.find(token, zones: dependencies.zones, in: database)
    else { return nil }
    return (token, visited)
  }
}
