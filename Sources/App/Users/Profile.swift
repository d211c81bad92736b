import Postgres

/// What a PATCH changes of one's own profile.
struct ProfileEdit: Sendable {
  let username: Edit<String>
  let displayName: Edit<String>
  let bio: Edit<String?>
  let email: Edit<String>
}

extension User {
  /// Changes one's own profile. What stays as it was moves no stamp; a new name moves those of everybody who sees it. A
  /// new address is only asked for: see ``askForEmail(_:by:keys:in:)``.
  ///
  /// - Throws: ``AppError/usernameTaken``, ``AppError/emailTaken``, or ``AppError/sessionEnded`` without an account.
  static func edit(
    _ id: ID, _ edit: ProfileEdit, by session: Session.ID, keys: SigningKeys, in change: Change
  ) async throws {
    // Locked before anything else is read: a change that befriends or invites this user waits, or is seen below.
    try change.takeTurns(at: [id], for: .update)
    let row = try await change.first(
      "SELECT username, display_name, bio FROM users WHERE id = \(id) FOR NO KEY UPDATE")
    guard let row else { throw AppError.sessionEnded }
    if case .set = edit.email { try await Session.check(session, in: change) }
    let (oldUsername, oldName): (String, String) = (try row["username"], try row["display_name"])
    let oldBio: String? = try row["bio"]
    let (username, name) = (edit.username.applied(to: oldUsername), edit.displayName.applied(to: oldName))
    let bio = edit.bio.applied(to: oldBio)
    let isRenamed = (username, name) != (oldUsername, oldName)
    if isRenamed { try await change.lockEvents(thatShow: id) }
    if isRenamed || bio != oldBio {
      do {
        try await change.rows(
          """
          UPDATE users
          SET username = \(username), display_name = \(name), bio = \(bio), updated_at = clock_timestamp()
          WHERE id = \(id)
          """)
      } catch let error as PostgresError where error.constraint == "username_taken" {
        throw AppError.usernameTaken
      }
      if isRenamed { change.touchWhoSees(id) } else { change.touch(.profile, of: id) }
    }
    if username.lowercased() != oldUsername.lowercased() {
      guard try await change.rows(retired("\(username)")).isEmpty else { throw AppError.usernameTaken }
    }
    if case .set(let email) = edit.email { try await askForEmail(email, by: id, keys: keys, in: change) }
  }

  /// Mails a link to an address, which becomes the account's when it is followed; until then the old one stays. To ask
  /// for the present address calls a pending change off, and mails its link anew while it is unverified. The account is
  /// locked by the caller.
  private static func askForEmail(_ email: String, by id: ID, keys: SigningKeys, in change: Change) async throws {
    let row = try await change.first(
      """
      SELECT email, email_verified_at IS NOT NULL AS is_verified,
        EXISTS (SELECT 1 FROM users WHERE lower(email) = lower(\(email)) AND id <> \(id)) AS is_taken,
        EXISTS (SELECT 1 FROM mail_tokens WHERE user_id = \(id) AND purpose = 'verify-email') AS is_pending
      FROM users WHERE id = \(id)
      """)
    guard let row else { throw AppError.sessionEnded }
    if try row["is_taken"] { throw AppError.emailTaken }
    let (isVerified, isPending): (Bool, Bool) = (try row["is_verified"], try row["is_pending"])
    let current: String? = try row["email"]
    if current == email, isVerified {
      guard isPending else { return }
      try await MailToken.revoke([.verifyEmail], of: id, in: change)
    } else {
      change.mail(.token(try await MailToken.issue(.verifyEmail, email: email, for: id, keys: keys, in: change)))
    }
    change.touch(.profile, of: id)
  }

  /// A row if nobody may take this name yet, because an account that had it was deleted a short while ago. To be asked
  /// in a statement after the one that took the name: that one may have waited for the deletion.
  static func retired(_ username: SQL) -> SQL {
    "SELECT 1 FROM retired_usernames WHERE digest = \(digest(of: username)) AND until > now()"
  }

  static func digest(of username: SQL) -> SQL {
    "sha256(convert_to(lower(\(username)), 'UTF8'))"
  }
}

extension Change {
  /// Locks the live events that somebody hosts, whose looks are about to change: nobody is invited to them meanwhile. The
  /// person is locked before.
  func lockEvents(thatShow host: User.ID) async throws {
    try await rows(
      """
      SELECT id FROM events WHERE creator_id = \(host) AND archived_at IS NULL
      ORDER BY id
      FOR NO KEY UPDATE
      """)
  }

  /// Touches every list that shows how this person looks, and no other, which would tell of a block: friends' lists, those
  /// of whoever has blocked them, pending requests on both sides, since each shows both, and the live events that they
  /// host, for everybody invited. The person and these events are locked.
  func touchWhoSees(_ person: User.ID) {
    touch(.profile, of: person)
    touch(.friends, ofUsersIn: "SELECT friend_id FROM friends WHERE user_id = \(person)")
    touch(.blocks, ofUsersIn: "SELECT blocker_id FROM shown_blocks WHERE blocked_id = \(person)")
    let pending: SQL = "status = 'pending' AND (sender_id = \(person) OR receiver_id = \(person))"
    touch(.friendRequests, ofUsersIn: "SELECT receiver_id FROM friend_requests WHERE \(pending)")
    touch(.sentFriendRequests, ofUsersIn: "SELECT sender_id FROM friend_requests WHERE \(pending)")
    let hosted: SQL = "e.creator_id = \(person) AND e.archived_at IS NULL"
    touch(.events, ofUsersIn: "SELECT e.creator_id FROM events AS e WHERE \(hosted)")
    touch(
      .events, .invitations,
      ofUsersIn: """
        SELECT i.user_id FROM events AS e JOIN invitations AS i ON i.event_id = e.id
        WHERE \(hosted) AND \(User.visible("i.user_id", to: person))
        """)
  }
}
