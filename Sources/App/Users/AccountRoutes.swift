import Foundation
import HTTPServer
import Logging
import Postgres

/// Routes to edit, export and delete the user's own account.
struct AccountRoutes {
  let dependencies: Dependencies
  private let exports = PerUser(limit: 1)

  private var database: Database { dependencies.database }

  @Sendable func edit(_ request: Request, _ context: Context) async throws -> Response {
    let (me, session) = (try context.user, try context.session)
    let (edit, email, reauthentication) = try await request.read { fields in
      let edit = Changes(User.Profile.settings, from: &fields, in: .patch)
      let email = edit.applied(to: .blank).newEmail
      // The address can receive a password reset, so a change of it needs reauthentication.
      let reauthentication = email.map { _ in
        fields.reauthentication(
          Body.ProfileEdit.currentPassword, idToken: Body.ProfileEdit.idToken, nonce: Body.ProfileEdit.nonce,
          code: Body.ProfileEdit.code)
      }
      return (edit, email, reauthentication)
    }
    let confirmation: Reauthentication.Confirmation?
    do {
      confirmation = try await reauthentication?.check(context, in: dependencies)
    } catch let error as AppError where error == .wrongCode {
      // A repeated request finds its code spent by the first one, which may have committed meanwhile.
      guard let repeated = context.idempotent, let first = try await repeated.stored(in: database),
        let response = try await repeated.response(first, in: database)
      else { throw AppError.wrongCode }
      return response
    }
    if let email {
      // Limits both the mails to one address and the mails from one account.
      try await dependencies.throttle.count(.changes(to: email), .changes(by: me))
    }
    let keys = dependencies.refreshTokenKeys
    let tags = request.ifMatch()
    return try await passing(email, context) { decision in
      try await dependencies.respond(to: context, at: [.user(me)]) {
        guard let user = try await User.find(me, in: database) else { throw AppError.sessionEnded }
        return user
      } verb: { change in
        // A spent code makes this a change, so that the response is stored.
        if confirmation != nil { change.noteQuietWrite() }
        try await confirmation?.spend(in: change)
        try await User.edit(me, edit, decision, by: session, ifStampIn: tags, keys: keys, in: change)
        guard let user = try await User.find(me, in: change) else { throw AppError.sessionEnded }
        return user
      } committed: {
        try await $0.afterCommit(in: database)
      } response: {
        .profile($0)
      }
    }
  }

  /// Asks the gate about the mail to an address that the user has typed.
  private func passing(
    _ email: EmailAddress?, _ context: Context, _ change: (MailGate.Decision?) async throws -> Response
  ) async throws -> Response {
    guard let email else { return try await change(nil) }
    let recipient = try await MailToken.recipient(at: email, in: database)
    // The account has verified this address, so there is no mail.
    if let recipient, recipient.isProven, recipient.user == (try context.user) { return try await change(nil) }
    let attempt = MailGate.Attempt(
      id: context.idempotent?.attempt ?? UUID(), kind: .verifyEmail, mailbox: Mailbox(email),
      origin: context.address, budget: .stranger)
    return try await dependencies.mailGate.passing(attempt, in: database, change)
  }

  @Sendable func delete(_ request: Request, _ context: Context) async throws -> Response {
    let (me, session) = (try context.user, try context.session)
    let reauthentication = try await request.read { fields in
      fields.reauthentication(
        Body.Reauthentication.password, idToken: Body.Reauthentication.idToken, nonce: Body.Reauthentication.nonce,
        code: Body.Reauthentication.code)
    }
    let confirmation = try await reauthentication.check(context, in: dependencies)
    try await dependencies.change(at: [.user(me)]) { change in
      try await confirmation.spend(in: change)
      try await User.erase(me, by: session, in: change)
    }
    return .noContent
  }

  @Sendable func export(_ request: Request, _ context: Context) async throws -> Response {
    let export = try await Export(of: context.user, turns: exports, in: database)
    let logger = context.logger
    return Response(
      status: .ok,
      headers: [
        .contentType: "application/json; charset=utf-8",
        .contentDisposition: #"attachment; filename="muster-export.json""#,
        .cacheControl: "no-store",
      ],
      body: ResponseBody { [comment = SQL.comment] writer in
        do {
          try await GlobalPool.run {
            try await SQL.$comment.withValue(comment) { try await export.write(to: writer) }
          }
        } catch let error as PostgresError {
          // It is too late for an error response: the connection is closed before the end of the document.
          logger.warning("an export was interrupted", metadata: ["error": "\(error)"])
          throw error
        }
      })
  }
}
