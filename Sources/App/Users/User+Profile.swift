import Postgres

extension User {
  /// The properties of an account that its owner sets.
  struct Profile: Sendable, Equatable {
    var username: String
    var displayName: String
    var bio: String?
    /// An address that was not proven yet: see ``User/edit(_:_:_:by:keys:in:)``. Nil unless a request sets it.
    var newEmail: EmailAddress?
    var requestsFrom: Audience
    var findableBy: Audience

    /// In the order of errors and columns; names and rules come from the document. Rows are read by ``init(fields:)``,
    /// in the same order.
    static let settings: [Setting<Profile>] = [
      .required(Body.ProfileEdit.username, "username", \.username),
      .required(Body.ProfileEdit.displayName, "display_name", \.displayName),
      .optional(Body.ProfileEdit.bio, "bio", \.bio),
      email,
      .defaulted(Body.ProfileEdit.requestsFrom, "requests_from", \.requestsFrom),
      .defaulted(Body.ProfileEdit.findableBy, "findable_by", \.findableBy),
    ]

    /// It becomes the account's address by a mail, so that no column has it.
    private static let email = Setting<Profile>(Body.ProfileEdit.email, \.newEmail, in: []) { fields, member, use in
      guard case .set(let email) = fields.edit(member, in: use) else { return .keep }
      return .set(email)
    }

    /// An empty profile, which shows the settings of a request.
    static let blank = Profile(username: "", displayName: "", requestsFrom: .noOne, findableBy: .noOne)

    static let columns = Columns(settings.flatMap(\.columns))
  }
}

extension User.Profile: SQLRecord {
  /// Of a row of `users`.
  static let record: SQL = "ROW(\(columns.list))"

  init(fields: inout SQLFields) throws {
    username = try fields.next()
    displayName = try fields.next()
    bio = try fields.next()
    requestsFrom = try fields.next()
    findableBy = try fields.next()
  }
}
