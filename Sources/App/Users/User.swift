import Postgres

/// An account, as its owner sees it.
public struct User: Stamped {
  public typealias ID = Identifier<User>

  let id: ID
  let username: String
  let displayName: String
  let bio: String?
  /// Relative to ``PublicURL``, which makes it absolute in a response.
  let pictureURL: String?
  /// Nil if the owner never gave one: users who sign in with Apple or Google need not.
  let email: String?
  let isEmailVerified: Bool
  /// The address that a verification link was mailed to. It becomes the account's address when the link is followed. It
  /// stays until then, or until another address is requested, even if the link has expired: a profile does not change
  /// with the clock.
  let pendingEmail: String?
  let hasPassword: Bool
  /// The names of the providers that the user can sign in with.
  let identities: [String]
  let requestsFrom: Audience
  let findableBy: Audience
  let createdAt: Timestamp
  /// The stamp of the profile, read in the same snapshot.
  var stamp: Timestamp?

  struct Registration: Sendable {
    let username: String
    let email: EmailAddress
    /// Nil if the user logs in with mailed codes.
    let passwordHash: String?
    let displayName: String
  }

  /// Creates an account and the stamps of all its collections.
  ///
  /// - Throws: ``AppError/usernameTaken``, including for the name of a recently deleted account, or
  ///   ``AppError/emailTaken``.
  static func register(_ new: Registration, id: ID = .new(), in change: Change) async throws -> ID {
    do {
      let retired = retired("\(new.username)")
      let results = try await change.pipeline(
        // A retired name is not tried: the result would reveal, without a trace, whether the address is taken.
        """
        INSERT INTO users (id, username, email, is_first_email, display_name, password_hash)
        SELECT \(id), \(new.username), \(new.email), true, \(new.displayName), \(new.passwordHash)
        WHERE NOT EXISTS (\(retired))
        """,
        firstStamps(of: id),
        retired)
      guard results[2].isEmpty else { throw AppError.usernameTaken }
      return id
    } catch let error as PostgresError where error.constraint == "username_taken" {
      throw AppError.usernameTaken
    } catch let error as PostgresError where error.constraint == "email_taken" {
      throw AppError.emailTaken
    }
  }

  /// The stamps that a new account begins with, if it was created.
  static func firstStamps(of id: ID) -> SQL {
    "INSERT INTO user_stamps (user_id) SELECT id FROM users WHERE id = \(id)"
  }

  static func find(_ id: ID, in database: some Querying) async throws -> User? {
    let row = try await database.first(
      """
      SELECT u.id, u.username, u.display_name, u.bio, u.picture_url, u.email,
        u.email_verified_at IS NOT NULL AS is_email_verified, pending.email AS pending_email,
        u.password_hash IS NOT NULL AS has_password,
        ARRAY(SELECT provider FROM identities WHERE user_id = u.id ORDER BY provider) AS identities, u.requests_from,
        u.findable_by, u.created_at,
        s.profile AS stamp
      FROM users AS u
      LEFT JOIN user_stamps AS s ON s.user_id = u.id
      LEFT JOIN mail_tokens AS pending ON pending.user_id = u.id AND pending.purpose = 'verify-email'
        AND pending.email_key IS DISTINCT FROM u.email_key
      WHERE u.id = \(id)
      """)
    return try row.map { row in
      User(
        id: try row["id"], username: try row["username"], displayName: try row["display_name"], bio: try row["bio"],
        pictureURL: try row["picture_url"], email: try row["email"], isEmailVerified: try row["is_email_verified"],
        pendingEmail: try row["pending_email"], hasPassword: try row["has_password"],
        identities: try row["identities"], requestsFrom: try row["requests_from"],
        findableBy: try row["findable_by"], createdAt: try row["created_at"], stamp: try row["stamp"])
    }
  }
}

extension User {
  /// The account after the commit of the change that it was read in. The stamp is written last, so only a read after
  /// the commit has it. If that read fails, the response must not say that nothing was changed.
  func afterCommit(in database: Database) async throws -> User {
    var changed = self
    changed.stamp = nil
    do {
      return try await User.find(id, in: database) ?? changed
    } catch is PostgresError {
      return changed
    }
  }
}

extension AppError {
  static let userNotFound = AppError(.notFound, "user-not-found", "There is no such user.")
  static func tooManyUsernames(retryAfter seconds: Int) -> AppError {
    AppError(
      .tooManyRequests, "too-many-usernames", "The username has changed several times. Change it again later.",
      retryAfter: seconds)
  }

  static let usernameTaken = AppError(.conflict, "username-taken", "This username is taken.")
  static let emailTaken = AppError(.conflict, "email-taken", "This e-mail address already belongs to an account.")
}

extension User {
  /// Whom a user lets reach them, besides their friends. A preference of the user, which only they see.
  enum Audience: String, CaseIterable, Sendable, SQLValue, JSONWritable {
    case everyone
    /// Users with a friend in common.
    case friendsOfFriends = "friends-of-friends"
    case noOne = "no-one"

    /// A SQL condition: whether an audience includes a user who is not a friend.
    ///
    /// - Parameters:
    ///   - audience: a column with the audience of `owner`.
    ///   - friends: a query of the ids of the user's friends.
    static func includes(_ audience: SQL, of owner: SQL, userWithFriends friends: SQL) -> SQL {
      """
      CASE \(audience)
        WHEN 'everyone' THEN true
        WHEN 'friends-of-friends' THEN EXISTS (
          SELECT FROM friends AS theirs WHERE theirs.user_id = \(owner) AND theirs.friend_id IN (\(friends))
        )
        ELSE false
      END
      """
    }
  }

  /// A SQL condition on a `users` row: whether the account's owner has proven an address, or signs in with a provider.
  static func isProven(_ users: SQL) -> SQL {
    """
    (\(users).email_verified_at IS NOT NULL OR EXISTS (SELECT FROM identities AS i WHERE i.user_id = \(users).id))
    """
  }
}

extension User {
  /// A SQL condition: whether a user sees another user. They see each other unless one of them has blocked the other.
  /// Every query that shows users to users includes it, and a change that concerns two users checks it after locking
  /// both.
  ///
  /// The set of hidden users is read once per statement, for any number of rows.
  ///
  /// - Parameter other: a column or value with a user's id. It must not be NULL.
  static func visible(_ other: SQL, to user: some SQLExpression<User.ID>) -> SQL {
    "\(other) NOT IN (SELECT hidden_id FROM hidden WHERE user_id = \(user))"
  }
}

extension User {
  /// Things with a limited number per user.
  enum Limited: Int32 {
    case sessions = 1, friendRequests, reports
  }

  /// Serializes a user's changes that add to a limited number, so that each counts what the ones before it have added.
  /// The lock ends with the transaction. Take it before the rows that are counted.
  ///
  /// This is not the lock of the user's row, which would wait for all changes that hold it for share.
  static func takeTurn(at limited: Limited, by user: ID, in change: Change) throws {
    try change.takeTurn(limited.rawValue, at: "hashtext(\(user)::text)")
  }
}

extension User: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.user(
      id: id, username: username, displayName: displayName, bio: bio, pictureUrl: PublicURL.absolute(pictureURL),
      email: email, emailVerified: isEmailVerified, pendingEmail: pendingEmail, hasPassword: hasPassword,
      identities: identities, requestsFrom: requestsFrom, findableBy: findableBy, createdAt: createdAt,
      timestamp: stamp.map(Stamp.init))
  }
}
