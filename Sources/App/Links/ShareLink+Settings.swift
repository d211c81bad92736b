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

    /// In the order of errors and columns. Rows are read by ``init(fields:)``, in the same order.
    static let settings: [Setting<Settings>] = [
      .required("kind", "kind", \.kind, .word(of: Kind.allCases)),
      .defaulted("shows", "shows", \.shows, .word(of: Shows.allCases)),
      .optional("expiresAt", "expires_at", \.expiresAt, .laterTime),
      .optional("maxGuests", "max_guests", \.maxGuests, .integer(1...Invitation.maximumGuests)),
      .defaulted("maxPlusOnes", "max_plus_ones", \.maxPlusOnes, .maxPlusOnes),
      .defaulted("email", "email", \.email, .word(of: Email.allCases)),
      .defaulted("approval", "approval", \.approval, .flag),
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
  fileprivate static var laterTime: Self { time.and("must be in the future", code: .outOfRange) { $0 > .now() } }
}
