import HTTPServer
import Postgres

/// Everything stored about one user, as a JSON document that is generated while it is sent. It is read in pages, and
/// holds no connection while the client reads, so concurrent changes may or may not show.
struct Export: Sendable {
  private let user: User.ID
  private let profile: String
  private let database: Database
  /// Each user gets one export at a time from this process, because it reads all of their data.
  private let turn: PerUser.Place

  static let pageLength = 500

  /// - Throws: ``AppError/sessionEnded`` if there is no account, or ``AppError/exportRunning``.
  init(of user: User.ID, turns: PerUser, in database: Database) async throws {
    do {
      turn = try turns.take(for: user)
    } catch {
      throw AppError.exportRunning
    }
    let row = try await database.slow.first(Section.profile.page(of: user, .all, after: Section.profile.start))
    guard let row else { throw AppError.sessionEnded }
    self.user = user
    self.database = database
    profile = try row["item"]
  }

  /// Sends the document, page by page, as fast as the client takes it.
  ///
  /// - Throws: ``AppError/sessionEnded``, before the end of the document, if the account was deleted meanwhile.
  @concurrent func write(to writer: any ResponseBodyWriter) async throws {
    var bytes = ByteBuffer(string: #"{"exportedAt":"\#(Timestamp.now().rfc3339())","profile":\#(profile)"#)
    for section in Section.all {
      bytes.writeString(",\"\(section.name)\":[")
      var separator = ""
      for part in section.parts {
        var place: Section.Place? = section.start
        while let after = place {
          let rows = try await database.slow.rows(section.page(of: user, part, after: after))
          for row in rows {
            bytes.writeString(separator)
            bytes.writeString(try row["item"])
            separator = ","
          }
          place = rows.count < Self.pageLength ? nil : try rows.last.map(Section.Place.init(row:))
          try await writer.write(bytes)
          bytes.clear()
        }
      }
      bytes.writeString("]")
    }
    // Pages that were read after a deletion are empty. The document must not look complete.
    guard try await database.slow.first("SELECT 1 FROM users WHERE id = \(user)") != nil else {
      throw AppError.sessionEnded
    }
    // A client that has the complete document may ask for the next one.
    turn.end()
    bytes.writeString("}")
    try await writer.write(bytes)
    writer.finish()
  }
}

extension AppError {
  static let exportRunning = AppError(
    .conflict, "export-running", "Another export is running. Wait until it finishes.")
}

extension Export {
  /// The rows of one table that are about the user. A test checks that every column is accounted for.
  struct Section: Sendable {
    let name: String
    let table: String
    /// The view that the table is read through.
    var view: String?
    /// The columns that name the user.
    let owners: [String]
    /// The columns with lists of ids that may include the user's.
    var ownerLists: [String] = []
    var key = Key.uuid("id")
    /// Whether the rows are of events, or of their guests and hosts. An index has them by archived start.
    var isArchivable = false
    /// The columns that are shown: as they are, as times, and as the people whose ids they hold.
    var values: [String] = []
    var times: [String] = []
    var people: [String] = []
    /// Whether to show rows about people whom the user cannot see. A deleted account leaves no such rows.
    var showsHidden = false
    /// The columns that are shown in base64.
    var binaries: [String] = []
    /// Further members of each item, in SQL.
    var more = ""
    /// The columns that are not shown: secrets, and values for internal use.
    var withheld: [String] = []

    /// The column that the rows are ordered by.
    struct Key: Sendable {
      let column: String
      let type: String
      /// A value before all others.
      let first: String

      static func uuid(_ column: String) -> Key {
        Key(column: column, type: "uuid", first: "00000000-0000-0000-0000-000000000000")
      }
      static func bigint(_ column: String) -> Key { Key(column: column, type: "bigint", first: "0") }
      static func text(_ column: String) -> Key { Key(column: column, type: "text", first: "") }
      static func time(_ column: String) -> Key { Key(column: column, type: "timestamptz", first: "-infinity") }
    }

    /// The rows that are read one after the other, in the order of one index.
    enum Part {
      case all, archived, live
    }

    /// The live part comes first: a row that is archived meanwhile is then exported twice, and never left out.
    var parts: [Part] { isArchivable ? [.live, .archived] : [.all] }

    /// The place of a row in its part.
    struct Place {
      fileprivate let archivedStart: String
      fileprivate let key: String
    }

    var start: Place { Place(archivedStart: Key.time("archived_start").first, key: key.first) }

    /// - Parameter place: that of the previous row.
    func page(of user: User.ID, _ part: Part, after place: Place) -> SQL {
      var mine: SQL = "false"
      for owner in owners { mine += " OR t.\(unescaped: owner) = \(user)" }
      for list in ownerLists { mine += " OR \(user) = ANY(t.\(unescaped: list))" }
      var seen: SQL = "true"
      for person in people where !showsHidden {
        seen += " AND (t.\(unescaped: person) IS NULL OR \(User.visible("t.\(unescaped: person)", to: user)))"
      }
      let id: SQL = "t.\(unescaped: key.column)"
      let after: SQL = "\(place.key)::\(unescaped: key.type)"
      let (rest, order, archivedStart): (SQL, SQL, SQL) =
        switch part {
        case .all: ("\(id) > \(after)", id, "NULL")
        case .live: ("t.archived_start IS NULL AND \(id) > \(after)", id, "NULL")
        case .archived:
          (
            "(t.archived_start, \(id)) > (\(place.archivedStart)::timestamptz, \(after))",
            "t.archived_start, \(id)", "t.archived_start"
          )
        }
      // As a subquery, the limit has no value that the planner knows, so that it does not sort all rows for each page.
      return """
        SELECT json_build_object(\(unescaped: members)) AS item, (\(id))::text AS place,
          (\(archivedStart))::text AS archived_start
        FROM \(unescaped: view ?? table) AS t
        WHERE (\(mine)) AND \(seen) AND \(rest)
        ORDER BY \(order)
        LIMIT (SELECT \(Export.pageLength))
        """
    }

    private var members: String {
      var members = values.map { "'\(Self.camelCase($0))', t.\($0)" }
      members += times.map {
        #"'\#(Self.camelCase($0))', to_char(\#(Self.utc("t.\($0)")), 'YYYY-MM-DD"T"HH24:MI:SS"Z"')"#
      }
      members += people.map {
        """
        '\(Self.camelCase($0.dropLast("_id".count)))', (
          SELECT json_build_object('id', p.id, 'username', p.username, 'displayName', p.display_name)
          FROM users AS p WHERE p.id = t.\($0)
        )
        """
      }
      // PostgreSQL breaks base64 into lines.
      members += binaries.map { "'\(Self.camelCase($0))', replace(encode(t.\($0), 'base64'), chr(10), '')" }
      if !more.isEmpty { members.append(more) }
      return members.joined(separator: ", ")
    }

    /// A time without a zone: what clocks in UTC show, whatever the zone of the connection.
    private static func utc(_ time: String) -> String {
      "timestamp 'epoch' + (\(time) - timestamptz 'epoch')"
    }

    private static func camelCase(_ column: some StringProtocol) -> String {
      var name = ""
      for word in column.split(separator: "_") {
        name += name.isEmpty ? String(word) : word.prefix(1).uppercased() + word.dropFirst()
      }
      return name
    }
  }
}

extension Export.Section.Place {
  init(row: Row) throws {
    let archivedStart: String? = try row["archived_start"]
    self.init(archivedStart: archivedStart ?? "", key: try row["place"])
  }
}

extension Export.Section {
  static let profile = Self(
    name: "profile", table: "users", owners: ["id"],
    values: ["id"] + User.Profile.columns.names + ["picture_url", "email"],
    times: ["email_verified_at", "created_at", "updated_at"],
    more: "'hasPassword', t.password_hash IS NOT NULL",  // The keys are made from the names.
    withheld: ["password_hash", "search_name", "username_key", "email_key", "is_first_email"])

  static let all = [
    Self(
      name: "pictures", table: "pictures", owners: ["user_id"], key: .text("key"), values: ["key"],
      // The smaller sizes are made from the largest.
      times: ["created_at"], binaries: ["jpeg_2048"], withheld: ["digest", "jpeg_192", "jpeg_768"]),
    Self(
      name: "identities", table: "identities", owners: ["user_id"], key: .text("provider"),
      values: ["provider", "subject", "stopped_email"], times: ["created_at", "relay_changed_at"],
      withheld: ["sealed_grant", "stopped_email_key"]),
    Self(
      name: "revokedIdentities", table: "revoked_identities", owners: ["user_id"], key: .text("provider"),
      values: ["provider", "subject"], times: ["revoked_at"]),
    Self(
      name: "sessions", table: "sessions", owners: ["user_id"], values: ["id", "device"],
      times: ["created_at", "rotated_at", "ended_at"],
      withheld: ["counter", "branch", "parent_branch", "kid", "epoch", "ended_xid"]),
    Self(
      name: "friends", table: "friendships", view: "friends", owners: ["user_id"], key: .uuid("friend_id"),
      times: ["since"], people: ["friend_id"]),
    Self(
      name: "friendRequests", table: "friend_requests", owners: ["sender_id", "receiver_id"],
      values: ["id", "status", "filtered"],
      times: ["created_at", "closed_at"], people: ["sender_id", "receiver_id"]),
    Self(
      name: "blocks", table: "blocks", view: "shown_blocks", owners: ["blocker_id"], key: .uuid("blocked_id"),
      times: ["created_at"],
      people: ["blocked_id"], showsHidden: true),
    Self(
      name: "reports", table: "reports", owners: ["reporter_id"],
      values: ["id", "user_id", "event_id", "visitor_id", "reason", "text"], times: ["created_at", "closed_at"],
      withheld: ["link_id", "owner_id", "snapshot", "picture", "closing_note", "expires_at"]),
    Self(
      name: "events", table: "events", owners: ["creator_id"], isArchivable: true,
      values: ["id"] + Event.Plan.columns.names(areTimes: false) + [
        "status", "version", "invited_count", "going_count", "maybe_count", "declined_count", "waitlisted_count",
        "pending_count", "visitor_count", "plus_ones_count", "start_offset", "end_offset", "answer_by_offset",
      ],
      times: Event.Plan.columns.names(areTimes: true) + [
        "remind_at", "live_until", "archived_at", "created_at", "updated_at",
      ], withheld: ["archived_start", "may_have_co_hosts", "stamp", "zone_rules"]),
    Self(
      name: "hostedEvents", table: "event_co_hosts", owners: ["user_id"], key: .uuid("event_id"), isArchivable: true,
      values: ["event_id"], times: ["added_at"],
      more: "'title', (SELECT e.title FROM events AS e WHERE e.id = t.event_id)", withheld: ["archived_start"]),
    Self(
      name: "hostOffers", table: "host_offers", owners: ["user_id"], values: ["id", "event_id"], times: ["offered_at"]),
    Self(
      name: "formerlyHostedEvents", table: "removed_hosts", owners: ["user_id"], key: .uuid("event_id"),
      values: ["event_id"]),
    Self(
      name: "shareLinks", table: "share_links", owners: ["creator_id"],
      values: ["id", "event_id"] + ShareLink.Settings.columns.names(areTimes: false) + ["joined_count"],
      times: ShareLink.Settings.columns.names(areTimes: true) + ["created_at"],
      withheld: ["kid"]),
    Self(
      // The visitors at the events that the user hosts, as guest lists show them.
      name: "visitors", table: "visitors", view: "hosted_visitors", owners: ["host_id"],
      values: ["id", "event_id", "name", "status", "plus_ones"], times: ["created_at", "answered_at"],
      withheld: [
        "link_id", "kid", "email", "email_key", "confirmed_at", "wanted", "unsubscribed_at", "mails_asked", "held_at",
        "informed_at", "has_news", "proposed_at",
        "lapses_at", "merges_into",
      ]),
    Self(
      name: "invitations", table: "invitations", owners: ["user_id"], key: .uuid("event_id"), isArchivable: true,
      values: ["event_id", "status", "plus_ones"], times: ["invited_at", "answered_at", "reminded_at"],
      more: "'title', (SELECT e.title FROM events AS e WHERE e.id = t.event_id)", withheld: ["archived_start"]),
    Self(
      name: "queuedNotices", table: "notification_queue", owners: [], ownerLists: ["recipient_ids"], key: .bigint("id"),
      values: ["notice_id", "type", "subject_id", "payload"], times: ["created_at", "died_at"], people: ["person_id"],
      withheld: ["id", "failures", "last_error", "trace", "guest_id"]),
    Self(
      name: "deliveries", table: "deliveries", owners: ["recipient_id"], key: .bigint("id"),
      values: ["notification_id", "type", "subject_id", "device_id", "payload", "attempts"],
      times: ["created_at", "due_at", "died_at"], people: ["person_id"],
      withheld: ["id", "deaths", "last_error", "worker_id", "leased_until", "lease", "trace", "guest_id"]),
    Self(
      name: "mails", table: "mails", owners: ["user_id"], key: .bigint("id"),
      values: ["mail_id", "type", "payload", "attempts"], times: ["created_at", "due_at", "died_at"],
      withheld: [
        "id", "mail_token_id", "visitor_id", "deaths", "last_error", "worker_id", "leased_until", "lease", "trace",
      ]),
    Self(
      name: "notifications", table: "notifications", owners: ["recipient_id"], key: .time("filed_at"),
      values: ["id", "type", "subject_id", "payload"], times: ["filed_at", "created_at", "read_at"],
      people: ["person_id"], withheld: ["guest_id"]),
    Self(
      name: "mutedNotifications", table: "muted_notifications", owners: ["user_id"], key: .text("type"),
      values: ["type"]),
    Self(
      name: "devices", table: "devices", owners: ["user_id"],
      values: ["id", "session_id", "platform", "token", "environment", "topic", "name", "localizes"],
      times: ["created_at", "registered_at"],
      withheld: ["badges_sent_at", "woken_at", "sealed_secret", "sealed_previous_secret", "previous_secret_until"]),
    Self(
      name: "mailTokens", table: "mail_tokens", owners: ["user_id"], values: ["purpose", "email"],
      times: ["expires_at"], withheld: ["id", "kid", "email_key"]),
    Self(
      name: "codeUses", table: "code_uses", owners: ["user_id"], values: ["kind"], times: ["used_at"],
      withheld: ["id"]),
    Self(
      name: "calendarLinks", table: "calendar_links", owners: ["user_id"], times: ["created_at"],
      // The link is a secret, and made from it.
      withheld: ["id", "session_ids", "had_other_readers", "epoch"]),
    Self(
      name: "collectionStamps", table: "user_stamps", owners: ["user_id"], key: .uuid("user_id"),
      times: Collection.allCases.map(\.column), withheld: ["inbox_floor"]),
  ]
}
