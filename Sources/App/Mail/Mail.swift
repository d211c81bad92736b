import Foundation
import Postgres

/// A mail that a change causes. It waits in `mails`; the text of its token is never stored.
enum Mail: Sendable {
  /// Sends a token to the address that it was issued for; no mail if none was issued. Anyone may have caused it, so it
  /// needs the gate's pass.
  case token(MailToken.ID, MailGate.Pass)
  /// Notifies the account's address that the password has changed.
  case passwordChanged(User.ID)
  /// Notifies the account's former address that it no longer belongs to the account. With a token, its reader can undo
  /// the change.
  case emailChanged(User.ID, from: EmailAddress, undo: MailToken.ID?)
  /// The same for a former address that no one has proven. Anyone may have caused it, so it needs the gate's pass.
  case unprovenEmailChanged(User.ID, from: EmailAddress, MailGate.Pass)
  /// Notifies the account's address that one more identity can log in.
  case identityLinked(User.ID)
  case identityUnlinked(User.ID)
  /// Asks the reader of a visitor's address to confirm it.
  case visitorConfirm(Guest.ID, MailGate.Pass)
  /// Notifies the visitors of an event, or one of them.
  case visitors(VisitorMail.Kind, at: Event.ID, only: Guest.ID? = nil, fields: [String] = [])

  /// The prefix of all mail types.
  static let prefix = "mail-"

  /// A mail without a token, about a change of an account.
  private enum Information: String, CaseIterable {
    case passwordChanged = "password-changed"
    case emailChanged = "email-changed"
    case identityLinked = "identity-linked"
    case identityUnlinked = "identity-unlinked"

    var type: String { prefix + rawValue }
  }

  /// The types of all rows of `mails`.
  static let types =
    [MailToken.Purpose.verifyEmail, .resetPassword, .signInCode].map { prefix + $0.rawValue }
    + Information.allCases.map(\.type) + VisitorMail.Kind.allCases.map(\.type)

  /// Queues the mail, with names and address as the change leaves them.
  var enqueueing: SQL {
    switch self {
    case .token(let id, _):
      """
      INSERT INTO mails (type, user_id, mail_token_id, payload)
      SELECT \(Self.prefix) || t.purpose, t.user_id, t.id,
        jsonb_build_object(
          'to', t.email, 'username', u.username, 'displayName', u.display_name, 'kid', t.kid, 'purpose', t.purpose,
          'proves', CASE WHEN t.purpose = 'verify-email' THEN
            CASE WHEN u.email_key = t.email_key AND \(User.mayBeClaimed) THEN 'registration' ELSE 'change' END
          END,
          'isProven', u.email_verified_at IS NOT NULL AND u.email_key = t.email_key)
      FROM mail_tokens AS t
      JOIN users AS u ON u.id = t.user_id
      WHERE t.id = \(id)
      """
    case .passwordChanged(let user): Self.informing(.passwordChanged, user)
    case .identityLinked(let user): Self.informing(.identityLinked, user)
    case .identityUnlinked(let user): Self.informing(.identityUnlinked, user)
    case .visitorConfirm(let id, _): VisitorMail.asking(id)
    case .visitors(let kind, let event, let only, let fields):
      VisitorMail.announcing(kind, of: event, only: only, fields: fields)
    case .emailChanged(let user, let old, nil): Self.informing(.emailChanged, user, to: "\(old)")
    case .unprovenEmailChanged(let user, let old, _):
      """
      INSERT INTO mails (type, user_id, payload)
      SELECT \(Information.emailChanged.type), u.id,
        jsonb_build_object(
          'to', \(old), 'username', u.username, 'displayName', u.display_name, 'isProven', false)
      FROM users AS u
      WHERE u.id = \(user)
      """
    case .emailChanged(let user, _, let undo?):
      """
      INSERT INTO mails (type, user_id, mail_token_id, payload)
      SELECT \(Information.emailChanged.type), u.id, t.id,
        jsonb_build_object(
          'to', t.email, 'username', u.username, 'displayName', u.display_name, 'kid', t.kid, 'purpose', t.purpose)
      FROM mail_tokens AS t
      JOIN users AS u ON u.id = t.user_id
      WHERE t.id = \(undo) AND u.id = \(user)
      """
    }
  }

  /// Only a proven address gets mails that inform: the reader of another one may have nothing to do with the account.
  private static func informing(_ information: Information, _ user: User.ID) -> SQL {
    informing(information, user, to: "CASE WHEN u.email_verified_at IS NOT NULL THEN u.email END")
  }

  private static func informing(_ information: Information, _ user: User.ID, to address: SQL) -> SQL {
    """
    INSERT INTO mails (type, user_id, payload)
    SELECT \(information.type), u.id,
      jsonb_build_object('to', \(address), 'username', u.username, 'displayName', u.display_name)
    FROM users AS u
    WHERE u.id = \(user) AND \(address) IS NOT NULL
    """
  }
}
