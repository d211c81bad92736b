import HTTPServer
import Postgres

/// The pages behind the links of mails about an account's address. They say what a click will end. Only POST writes.
struct AddressPageRoutes {
  let dependencies: Dependencies

  private var database: Database { dependencies.database }
  private var keys: SigningKeys { dependencies.refreshTokenKeys }

  /// The first part of the path of the page for a token; nil if there is none.
  static func path(for purpose: MailToken.Purpose) -> String? {
    switch purpose {
    case .verifyEmail: "verify"
    case .undoEmailChange: "undo"
    case .resetPassword, .signInCode: nil
    }
  }

  // MARK: Verifying

  @Sendable func showVerifying(_ request: Request, _ context: Context) async throws -> Response {
    guard let claim = try await AddressClaim.find(text(context), for: .verifyEmail, keys: keys, in: database) else {
      return try .page(.unknownAddressLink, .notFound)
    }
    return try .page(claim.mayBeClaimed ? claim.verifying : claim.openWhereLoggedIn)
  }

  @Sendable func verify(_ request: Request, _ context: Context) async throws -> Response {
    try await post(request, context, for: .verifyEmail) { claim in
      let user = try await dependencies.verifyEmail(by: text(context), as: nil, from: context.address)
      return claim.claimed(try await AddressClaim.leftovers(of: user, in: database))
    }
  }

  // MARK: Undoing

  @Sendable func showUndoing(_ request: Request, _ context: Context) async throws -> Response {
    guard let claim = try await AddressClaim.find(text(context), for: .undoEmailChange, keys: keys, in: database) else {
      return try .page(.unknownAddressLink, .notFound)
    }
    return try .page(claim.undoing)
  }

  @Sendable func undo(_ request: Request, _ context: Context) async throws -> Response {
    try await post(request, context, for: .undoEmailChange) { claim in
      try await dependencies.undoEmailChange(by: text(context))
      return claim.claimed(try await AddressClaim.leftovers(of: claim.user, in: database))
    }
  }

  // MARK: Both

  /// Acts after a click on the page's button, and on nothing else.
  private func post(
    _ request: Request, _ context: Context, for purpose: MailToken.Purpose,
    act: (AddressClaim) async throws -> SharePage
  ) async throws -> Response {
    let fields = try await request.form()
    if request.isCrossSite { return try .page(.foreign, .forbidden) }
    guard let claim = try await AddressClaim.find(text(context), for: purpose, keys: keys, in: database) else {
      return try .page(.unknownAddressLink, .notFound)
    }
    guard fields.field("do") == SharePage.confirming else {
      return try .page(purpose == .verifyEmail ? claim.verifying : claim.undoing, .unprocessableContent)
    }
    do {
      return try .page(try await act(claim))
    } catch let refusal as AppError where refusal == .openWhereLoggedIn {
      return try .page(claim.openWhereLoggedIn, .unauthorized)
    } catch let refusal as AppError where refusal == .emailTaken {
      return try .page(.takenAddress, .conflict)
    } catch let refusal as AppError where refusal == .badMailToken {
      // Another click was faster.
      return try .page(.unknownAddressLink, .notFound)
    }
  }

  private func text(_ context: Context) -> String { context.parameters.get("token") ?? "" }
}
