import Postgres

extension ShareLink {
  /// The properties that a host sets.
  struct Settings: Sendable, Equatable {
    var kind: Kind
    var shows = Shows.counts
    /// Nil: the link works until the event is archived.
    var expiresAt: Timestamp?
    /// The maximum number of guests who may come through the link; nil for no limit.
    var maxGuests: Int?
    /// The number of people whom each visitor may bring.
    var maxPlusOnes = 0
    var email = Email.optional
    /// Whether a host must approve each guest first. The default, because anyone who has the link may answer.
    var approval = true

    /// In the order of errors and columns; names and rules come from the document. Rows are read by ``init(fields:)``,
    /// in the same order.
    static let settings: [Setting<Settings>] = [
      .required(Body.ShareLinkDraft.kind, "kind", \.kind),
      .defaulted(Body.ShareLinkDraft.shows, "shows", \.shows),
      .optional(Body.ShareLinkDraft.expiresAt, "expires_at", \.expiresAt),
      .optional(Body.ShareLinkDraft.maxGuests, "max_guests", \.maxGuests),
      .defaulted(Body.ShareLinkDraft.maxPlusOnes, "max_plus_ones", \.maxPlusOnes),
      .defaulted(Body.ShareLinkDraft.email, "email", \.email),
      .defaulted(Body.ShareLinkDraft.approval, "approval", \.approval),
    ]

    static let columns = Columns(settings.flatMap(\.columns))
  }
}

extension ShareLink.Settings: SQLRecord {
  /// - Parameter prefix: of the columns of `share_links`, such as `l.`.
  static func record(_ prefix: String) -> SQL {
    "ROW(\(unescaped: columns.names.map { prefix + $0 }.joined(separator: ", ")))"
  }

  init(fields: inout SQLFields) throws {
    kind = try fields.next()
    shows = try fields.next()
    expiresAt = try fields.next()
    maxGuests = try fields.next()
    maxPlusOnes = try fields.next()
    email = try fields.next()
    approval = try fields.next()
  }
}

extension Fields.Rule where Value == Timestamp {
  var later: Self { and("must be in the future", code: .outOfRange) { $0 > .now() } }
}
