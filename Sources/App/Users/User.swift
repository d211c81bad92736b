import Postgres

/// An account, as its owner sees it.
public struct User: Sendable {
  public typealias ID = Identifier<User>

  let id: ID
  let username: String
  let displayName: String
  let bio: String?
  /// Relative to ``PublicURL``, which makes it whole in an answer.
  let pictureURL: String?
  /// Nil if its owner never told one: who signs in with Apple or Google need not.
  let email: String?
  let isEmailVerified: Bool
  /// To which a link was mailed: it becomes the address once it is followed. Stays until then, or until another is asked
  /// for, whether the link is still good or not: a profile does not change by the clock.
  let pendingEmail: String?
  let createdAt: Timestamp
  /// The stamp of the profile, read in the same snapshot.
  var stamp: Timestamp?

  struct Registration: Sendable {
    let username: String
    let email: String
    let passwordHash: String
    let displayName: String
  }

  /// Creates an account and the stamps of all its collections.
  ///
  /// - Throws: ``AppError/usernameTaken``, for the name of an account deleted a short while ago too, or
  ///   ``AppError/emailTaken``.
  static func register(_ new: Registration, id: ID = .new(), in change: Change) async throws -> ID {
    do {
      let retired = retired("\(new.username)")
      let answers = try await change.pipeline(
        // Not even tried with a retired name, or it would tell whether the address is taken, without anybody's notice.
        """
        INSERT INTO users (id, username, email, display_name, password_hash)
        SELECT \(id), \(new.username), \(new.email), \(new.displayName), \(new.passwordHash)
        WHERE NOT EXISTS (\(retired))
        """,
        firstStamps(of: id),
        retired)
      guard answers[2].isEmpty else { throw AppError.usernameTaken }
      return id
    } catch let error as PostgresError where error.constraint == "username_taken" {
      throw AppError.usernameTaken
    } catch let error as PostgresError where error.constraint == "email_taken" {
      throw AppError.emailTaken
    }
  }

  /// The stamps that a new account begins with, if it was made.
  static func firstStamps(of id: ID) -> SQL {
    "INSERT INTO user_stamps (user_id) SELECT id FROM users WHERE id = \(id)"
  }

  static func find(_ id: ID, in database: some Querying) async throws -> User? {
    let row = try await database.first(
      """
      SELECT u.id, u.username, u.display_name, u.bio, u.picture_url, u.email,
        u.email_verified_at IS NOT NULL AS is_email_verified, pending.email AS pending_email, u.created_at, s.profile AS stamp
      FROM users AS u
      LEFT JOIN user_stamps AS s ON s.user_id = u.id
      LEFT JOIN mail_tokens AS pending ON pending.user_id = u.id AND pending.purpose = 'verify-email'
        AND pending.email IS DISTINCT FROM u.email
      WHERE u.id = \(id)
      """)
    return try row.map { row in
      User(
        id: try row["id"], username: try row["username"], displayName: try row["display_name"], bio: try row["bio"],
        pictureURL: try row["picture_url"], email: try row["email"], isEmailVerified: try row["is_email_verified"],
        pendingEmail: try row["pending_email"], createdAt: try row["created_at"], stamp: try row["stamp"])
    }
  }
}

extension User {
  /// The account after the change that it was read in was committed: the stamp is written last of all, so only a read
  /// after the commit has it. Failing, it must not say that nothing was changed.
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
  static let usernameTaken = AppError(.conflict, "username-taken", "Somebody else has this username.")
  static let emailTaken = AppError(.conflict, "email-taken", "This e-mail address belongs to an account already.")
}
