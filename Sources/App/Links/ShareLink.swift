import Postgres

/// A link to a page about an event. Everyone who has the link sees the page. See ``IDTokens``.
struct ShareLink: Sendable {
  typealias ID = Identifier<ShareLink>

  /// The purpose of the link: to look, or also to become a guest.
  enum Kind: String, CaseIterable, Sendable, SQLValue, JSONWritable, Decodable {
    case view, answer
  }

  /// The guests on the page: their numbers only, or also the names of those who are going.
  enum Shows: String, CaseIterable, Sendable, SQLValue, JSONWritable, Decodable {
    case counts, names
  }

  /// Whether the form asks visitors for an e-mail address.
  enum Email: String, CaseIterable, Sendable, SQLValue, JSONWritable {
    case required, optional, none
  }

  /// The maximum number of links of one event. Expired ones make room for new ones.
  static let maximumPerEvent = 20

  let id: ID
  let settings: Settings
  let kid: String
  let joined: Int
  /// The visitors who wait for a mail to confirm their address that the gate has held back.
  private(set) var unmailed = 0
  let createdAt: Timestamp
  /// The host who created it.
  let creator: User.ID

  static let columns = columns(of: "")
  /// For hosts, who also see ``unmailed``.
  private static let hostsColumns: SQL = """
    \(columns), (
      SELECT count(*) FROM visitors AS v
      WHERE v.link_id = share_links.id AND v.held_at IS NOT NULL AND v.confirmed_at IS NULL
        AND v.lapses_at IS NOT NULL
    ) AS unmailed_count
    """

  /// - Parameter prefix: of a table's columns, such as `l.`.
  static func columns(of prefix: String) -> SQL {
    let own = ["id", "kid", "joined_count", "created_at"].map { prefix + $0 }.joined(separator: ", ")
    return """
      \(unescaped: own), \(Settings.record(prefix)) AS settings, \(unescaped: prefix)creator_id AS link_creator
      """
  }

  /// A SQL condition: whether a link admits guests, its number of guests aside.
  ///
  /// - Parameter alias: of `share_links`.
  static func isOpen(_ alias: SQL) -> SQL {
    "(\(alias).kind = 'answer' AND coalesce(\(alias).expires_at > clock_timestamp(), true))"
  }

  /// A SQL condition: whether a link still stands behind a visitor's answer. Its host can make it a link that only
  /// shows. An answer that came before the link expired stays good.
  ///
  /// - Parameters:
  ///   - alias: of `share_links`.
  ///   - visitors: the alias of `visitors`.
  static func supports(_ alias: SQL, answerOf visitors: SQL) -> SQL {
    "(\(alias).kind = 'answer' AND coalesce(\(alias).expires_at > \(visitors).created_at, true))"
  }

  private init(ofHosts row: Row) throws {
    try self.init(row: row)
    unmailed = try row["unmailed_count"]
  }

  init(row: Row) throws {
    id = try row["id"]
    settings = try row["settings"]
    kid = try row["kid"]
    joined = try row["joined_count"]
    createdAt = try row["created_at"]
    creator = try row["link_creator"]
  }

  // MARK: Reading

  /// Whether a host sees the link's address. The event's creator sees those of all links. Co-hosts see their own: the
  /// others would outlast their role.
  static func showsURL(of event: Event.ID, to host: User.ID, in database: some Querying) async throws
    -> @Sendable (ShareLink) -> Bool
  {
    let isCreator: Bool? = try await database.value(
      "SELECT EXISTS (SELECT FROM events WHERE id = \(event) AND creator_id = \(host))")
    return { isCreator == true || $0.creator == host }
  }

  /// The links of an event, oldest first, for its hosts only.
  static func list(of event: Event.ID, for host: User.ID, in database: some Querying) async throws -> [ShareLink] {
    let links = try await database.rows(
      """
      SELECT \(hostsColumns) FROM share_links
      WHERE event_id = \(event) AND \(Event.isHosted(event, by: host))
      ORDER BY id
      """
    ).map(ShareLink.init(ofHosts:))
    // No row: the event has no links, or the user is not a host.
    if links.isEmpty { try await Event.checkHosts(event, host, in: database) }
    return links
  }

  /// One link of an event, for its hosts only.
  ///
  /// - Throws: ``AppError/linkNotFound``
  static func find(
    _ id: ID, of event: Event.ID, for host: User.ID, in database: some Querying
  ) async throws -> ShareLink {
    guard let link = try await list(of: event, for: host, in: database).first(where: { $0.id == id }) else {
      throw AppError.linkNotFound
    }
    return link
  }

  // MARK: Writing. No cached list shows links, so none of these moves a stamp.

  /// Creates a link to an open event.
  static func create(
    _ id: ID, to event: Event.ID, _ settings: Settings, kid: String, by host: User.ID, in change: Change
  ) async throws -> ShareLink {
    // The account must not end meanwhile, because its links end with it.
    guard try await change.lock(host, for: .share).contains(host) else { throw AppError.sessionEnded }
    let row = try await Event.lock(event, by: host, in: change)
    try Event.Phase(row: row).checkIsOpen()
    try await makeRoom(at: event, in: change)
    let inserted = try await change.rows(
      """
      INSERT INTO share_links (id, event_id, creator_id, kid, \(Settings.columns.list))
      VALUES (\(id), \(event), \(host), \(kid), \(Settings.columns.values(of: settings)))
      RETURNING \(hostsColumns)
      """)
    return try ShareLink(ofHosts: inserted[0])
  }

  private static func makeRoom(at event: Event.ID, in change: Change) async throws {
    let mine: SQL = "FROM share_links WHERE event_id = \(event)"
    let count: Int? = try await change.value("SELECT count(*) \(mine)")
    guard let count, count >= maximumPerEvent else { return }
    let expired = try await change.rows("DELETE \(mine) AND expires_at <= clock_timestamp()").affected
    guard count - expired < maximumPerEvent else { throw AppError.tooManyLinks }
  }

  /// Changes the settings of a link to an open event. Guests who have joined stay.
  static func edit(
    _ id: ID, of event: Event.ID, _ edit: Changes<Settings>, by host: User.ID, in change: Change
  ) async throws -> ShareLink {
    let row = try await Event.lock(event, by: host, in: change)
    let link = try await find(id, of: event, for: host, in: change)
    try Event.Phase(row: row).checkIsOpen()
    let new = edit.applied(to: link.settings)
    guard new != link.settings else { return link }
    change.noteQuietWrite()
    let edited = try await change.rows(
      """
      UPDATE share_links
      SET \(Settings.columns.assignments(from: new))
      WHERE id = \(id)
      RETURNING \(hostsColumns)
      """)
    return try ShareLink(ofHosts: edited[0])
  }

  /// A statement that revokes the links of a user who no longer hosts the event. Otherwise they would be a way back in.
  static func revoking(of host: User.ID, at event: Event.ID) -> SQL {
    "DELETE FROM share_links WHERE event_id = \(event) AND creator_id = \(host)"
  }

  /// The treatment of visitors who have come through a link that is revoked.
  enum Visitors: String, CaseIterable {
    case keep, remove
  }

  /// Revokes a link for good. Users who have joined stay. Repeating the call changes nothing.
  ///
  /// - Parameter visitors: the visitors of a link that was revoked before can still be removed.
  static func revoke(
    _ id: ID, of event: Event.ID, visitors: Visitors = .keep, by host: User.ID, in change: Change
  ) async throws {
    let row = try await Event.lock(event, by: host, in: change)
    try change.write("DELETE FROM share_links WHERE id = \(id) AND event_id = \(event)")
    guard visitors == .remove else { return }
    try Event.Phase(row: row).checkIsOpen()
    // In one change: the free places are given on once, after all have left.
    try await Guest.leave(visitors: "v.event_id = \(event) AND v.link_id = \(id)", by: .user(host), in: change)
  }
}

extension AppError {
  static let linkNotFound = AppError(.notFound, "link-not-found", "There is no such link.")
  static let tooManyLinks = AppError(
    .conflict, "too-many-links",
    "An event has at most \(ShareLink.maximumPerEvent) links. Revoke one, then retry.")
}

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
