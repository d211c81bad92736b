import Postgres

extension User {
  /// Changes the user's own profile. Unchanged fields move no stamp; a new name moves the stamps of everyone who sees
  /// it. A new address is only requested: see ``askForEmail(_:_:by:keys:in:)``.
  ///
  /// - Parameters:
  ///   - edit: what the request sets.
  ///   - tags: the stamps of the profile that the client has read. With another one, a change gets 412.
  ///   - decision: on the mail to a new address.
  /// - Throws: ``AppError/usernameTaken``, ``AppError/emailTaken``, ``AppError/tooManyAttempts`` if the gate holds the
  ///   mail back, or ``AppError/sessionEnded`` if there is no account.
  static func edit(
    _ id: ID, _ edit: Changes<Profile>, _ decision: MailGate.Decision?, by session: Session.ID,
    ifStampIn tags: EntityTags? = nil, keys: SigningKeys, in change: Change
  ) async throws {
    // The row is locked before anything else is read: a change that befriends or invites this user waits, or is seen
    // below.
    try change.takeTurns(at: [id], for: .update)
    let row = try await change.first(
      "SELECT \(Profile.record) AS profile FROM users WHERE id = \(id) FOR NO KEY UPDATE")
    guard let old: Profile = try row?["profile"] else { throw AppError.sessionEnded }
    let new = edit.applied(to: old)
    let isChanged = Profile.settings.contains { !$0.columns.isEmpty && $0.differs(old, new) }
    if isChanged || new.newEmail != nil { try await check(tags, of: id, in: change) }
    if new.newEmail != nil { try await Session.check(session, in: change) }
    let isRenamed = (new.username, new.displayName) != (old.username, old.displayName)
    if isRenamed { try change.lockEvents(thatShow: id) }
    if isChanged {
      do {
        try await change.rows(
          """
          UPDATE users SET \(Profile.columns.assignments(from: new)), updated_at = clock_timestamp() WHERE id = \(id)
          """)
      } catch let error as PostgresError where error.constraint == "username_taken" {
        throw AppError.usernameTaken
      }
      if isRenamed { try change.touchWhoSees(id) } else { change.touch(.profile, of: id) }
    }
    if new.username.lowercasedASCII != old.username.lowercasedASCII {
      try await retire(old.username, for: new.username, of: id, in: change)
    }
    if let email = new.newEmail { try await askForEmail(email, decision, by: id, keys: keys, in: change) }
  }

  /// Refuses a change of a profile that is based on another one. The caller has locked the user's row.
  ///
  /// - Parameter tags: the stamps that the client has read; nil for any.
  /// - Throws: ``AppError/lostUpdate``
  static func check(_ tags: EntityTags?, of id: ID, in change: Change) async throws {
    guard let tags, let stamp = try await Stamps.read(.profile, of: id, in: change) else { return }
    guard tags.contains(stamp) else { throw AppError.lostUpdate }
  }

  /// Mails a link to an address, which becomes the account's when the link is followed. Until then, the old one stays.
  /// A request for the current address cancels a pending change, and mails the link again if the address is unverified.
  /// The caller has locked the account.
  private static func askForEmail(
    _ email: EmailAddress, _ decision: MailGate.Decision?, by id: ID, keys: SigningKeys, in change: Change
  ) async throws {
    let row = try await change.first(
      """
      SELECT email, email_verified_at IS NOT NULL AS is_verified,
        EXISTS (SELECT 1 FROM users WHERE email_key = \(email.key) AND id <> \(id)) AS is_taken,
        EXISTS (SELECT 1 FROM mail_tokens WHERE user_id = \(id) AND purpose = 'verify-email') AS is_pending
      FROM users WHERE id = \(id)
      """)
    guard let row else { throw AppError.sessionEnded }
    if try row["is_taken"] { throw AppError.emailTaken }
    let (isVerified, isPending): (Bool, Bool) = (try row["is_verified"], try row["is_pending"])
    let current: EmailAddress? = try row["email"]
    if let current, current.key == email.key, isVerified {
      // One mailbox: another spelling needs no proof.
      guard isPending || current != email else { return }
      if current != email {
        try change.write("UPDATE users SET email = \(email), updated_at = clock_timestamp() WHERE id = \(id)")
      }
      try MailToken.revoke([.verifyEmail], of: id, in: change)
    } else {
      // The user waits for the mail, and has to know that there is none. That a mailbox has opted out is not for others.
      guard let decision, !decision.isHeld else { throw AppError.tooManyAttempts.waiting(3600) }
      let mailed = try MailToken.issue(.verifyEmail, email: email, for: id, keys: keys, in: change)
      if let pass = decision.pass { change.mail(.token(mailed, pass)) }
    }
    change.touch(.profile, of: id)
  }

  /// Retires the username that a user has given up for another one.
  ///
  /// - Throws: ``AppError/usernameTaken`` if someone else has given up the new name recently; `too-many-usernames` if
  ///   the user has given up too many names recently.
  private static func retire(
    _ username: String, for newUsername: String, of id: ID, in change: Change
  ) async throws {
    // After the statement that took the name, because that one may have waited for the change that gave it up.
    let results = try await change.pipeline(
      retired("\(newUsername)", except: id),
      "DELETE FROM retired_usernames WHERE digest = \(digest(of: "\(newUsername)"))",
      retiring("\(username)", of: id),
      """
      SELECT ceil(extract(epoch FROM until - clock_timestamp()))::bigint FROM retired_usernames
      WHERE user_id = \(id) AND until > clock_timestamp()
      ORDER BY until DESC
      OFFSET \(maximumRetired)
      """)
    guard results[0].isEmpty else { throw AppError.usernameTaken }
    // Otherwise one user could take any number of names out of use.
    if let tooMany = results[3].first { throw AppError.tooManyUsernames(retryAfter: try tooMany[0]) }
  }

  /// How many names of one user are retired at a time.
  private static let maximumRetired = 5

  /// - Parameter owner: the user who may take the name back; nil if the account is deleted.
  static func retiring(_ username: SQL, of owner: ID?) -> SQL {
    """
    INSERT INTO retired_usernames (digest, user_id, until)
    VALUES (\(digest(of: username)), \(owner), clock_timestamp() + interval '30 days')
    ON CONFLICT (digest) DO UPDATE SET user_id = excluded.user_id, until = excluded.until
    """
  }

  /// A row if this name is retired: its owner gave it up recently, or deleted the account. Read this in a statement
  /// after the one that took the name, because that one may have waited for the owner's change.
  ///
  /// - Parameter owner: the user who may take the name anyway.
  static func retired(_ username: SQL, except owner: ID? = nil) -> SQL {
    """
    SELECT 1 FROM retired_usernames
    WHERE digest = \(digest(of: username)) AND until > now() AND (user_id = \(owner)) IS NOT TRUE
    """
  }

  static func digest(of username: SQL) -> SQL {
    "sha256(convert_to(ascii_folded(\(username)), 'UTF8'))"
  }
}

extension Change {
  /// Locks the live events that show a person whose name or picture is about to change, so that no one is invited to
  /// them meanwhile. The caller has locked the person.
  func lockEvents(thatShow person: User.ID) throws {
    try write(Event.locking(Event.liveConcerning(person), where: "archived_at IS NULL"))
  }

  /// Touches every list that shows this person's name or picture, and no other list, because that would reveal a block.
  /// These are friends' lists, the lists of users who have blocked them, pending requests on both sides, since each
  /// shows both, and the live events that they host, for all hosts and guests. Also moves the stamps of the live events
  /// that show them, for all readers: `counts` tells anyway that someone hidden is there. The caller has locked the person and these events.
  func touchWhoSees(_ person: User.ID) throws {
    try Event.moveStamps(of: Event.liveConcerning(person), in: self)
    touch(.profile, of: person)
    touch(.friends, ofUsersIn: "SELECT friend_id FROM friends WHERE user_id = \(person)")
    touch(.blocks, ofUsersIn: "SELECT blocker_id FROM shown_blocks WHERE blocked_id = \(person)")
    let pending: SQL = "status = 'pending' AND (sender_id = \(person) OR receiver_id = \(person))"
    touch(.friendRequests, ofUsersIn: "SELECT receiver_id FROM friend_requests WHERE \(pending) AND NOT filtered")
    touch(.sentFriendRequests, ofUsersIn: "SELECT sender_id FROM friend_requests WHERE \(pending)")
    let hosted = Event.hostedLive(by: person)
    touch(
      .events,
      ofUsersIn: """
        SELECT user_id FROM event_hosts
        WHERE event_id IN (\(hosted)) AND \(User.visible("user_id", to: person))
        """)
    touch(
      .events, .invitations,
      ofUsersIn: """
        SELECT user_id FROM invitations
        WHERE event_id IN (\(hosted)) AND \(User.visible("user_id", to: person))
        """)
  }
}

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
