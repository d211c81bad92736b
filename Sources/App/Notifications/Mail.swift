import Foundation
import Postgres

/// A mail that a change causes. It waits in the queue beside the notifications, and no text of a token with it.
enum Mail: Sendable {
  /// Brings a token to the address that it was issued for; no mail if none was issued.
  case token(MailToken.ID)
  /// Tells the account's address that the password is another.
  case passwordChanged(User.ID)
  /// Tells the address that was the account's that it no longer is.
  case emailChanged(User.ID, from: String)

  /// What the types of mails in the queue begin with.
  static let prefix = "mail-"

  /// Tells the account's address that somebody can sign in with one more identity.
  case identityLinked(User.ID)

  /// Puts it into the queue, with names and address as the change leaves them.
  var enqueueing: SQL {
    switch self {
    case .token(let id):
      """
      INSERT INTO notification_queue (type, recipient_id, subject_id, payload)
      SELECT 'mail-' || t.purpose, t.user_id, t.id,
        jsonb_build_object(
          'type', 'mail-' || t.purpose, 'to', t.email, 'username', u.username, 'displayName', u.display_name,
          'mailTokenId', t.id, 'kid', t.kid, 'purpose', t.purpose)
      FROM mail_tokens AS t
      JOIN users AS u ON u.id = t.user_id
      WHERE t.id = \(id)
      """
    case .passwordChanged(let user):
      Self.informing("mail-password-changed", user, to: "u.email")
    case .identityLinked(let user):
      Self.informing("mail-identity-linked", user, to: "u.email")
    case .emailChanged(let user, let old):
      Self.informing("mail-email-changed", user, to: "\(old)")
    }
  }

  /// About nothing but itself: one that cannot be delivered keeps no other waiting.
  private static func informing(_ type: String, _ user: User.ID, to address: SQL) -> SQL {
    """
    INSERT INTO notification_queue (type, recipient_id, subject_id, payload)
    SELECT \(type), u.id, uuid_v7(),
      jsonb_build_object(
        'type', \(type), 'to', \(address), 'username', u.username, 'displayName', u.display_name)
    FROM users AS u
    WHERE u.id = \(user) AND \(address) IS NOT NULL
    """
  }
}

/// A mail on its way to whoever writes and sends it.
public struct OutgoingMail: Sendable {
  /// The same at every attempt.
  public let id: String
  /// `verify-email`, `reset-password`, `password-changed`, `email-changed` or `identity-linked`.
  public let type: String
  public let to: String
  public let username: String
  public let displayName: String
  /// What its reader has to show, and until when; nil in mails that only inform.
  public let token: String?
  public let expiresAt: Timestamp?
  /// When the change was made that caused it.
  public let createdAt: Timestamp
}

extension OutgoingMail {
  /// What is in the queue.
  private struct Payload: Decodable {
    let to: String
    let username: String
    let displayName: String
    let mailTokenId: UUID?
    let kid: String?
    let purpose: MailToken.Purpose?
  }

  /// Makes a mail of a row of the queue, with the text of its token.
  ///
  /// - Returns: nil if the token was used, replaced or forgotten meanwhile, or has expired: nobody needs the mail.
  static func compose(
    _ item: NotificationQueue.Item, keys: SigningKeys, in database: Database
  ) async throws -> OutgoingMail? {
    let payload = try JSONDecoder().decode(Payload.self, from: Data(item.payload.text.utf8))
    var token: String?
    var expiresAt: Timestamp?
    if let id = payload.mailTokenId, let kid = payload.kid, let purpose = payload.purpose {
      expiresAt = try await database.value(
        "SELECT expires_at FROM mail_tokens WHERE id = \(id) AND expires_at > clock_timestamp()")
      guard expiresAt != nil else { return nil }
      token = MailToken.text(of: MailToken.ID(rawValue: id), for: purpose, kid: kid, keys: keys)
      guard token != nil else {
        throw DeliveryFailure(description: "MUSTER_REFRESH_TOKEN_KEYS lacks the key \(kid) of this mail's token")
      }
    }
    return OutgoingMail(
      id: item.notificationID.uuidString.lowercased(), type: String(item.type.dropFirst(Mail.prefix.count)),
      to: payload.to, username: payload.username, displayName: payload.displayName, token: token,
      expiresAt: expiresAt, createdAt: item.createdAt)
  }
}
