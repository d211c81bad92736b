import Foundation
import JWTKit
import Postgres

/// A notification from Apple about one of the service's users: a signed token, sent by Apple's server.
struct AppleNotification: Sendable {
  enum Event: Sendable {
    /// The user has stopped using Apple for this app, or has deleted the Apple account.
    case revoked
    /// The user has turned Apple's relay of mails off, or on again.
    case relayStopped(EmailAddress)
    case relayStarted
  }

  /// Nil for a type that this release does not know.
  let event: Event?
  /// Apple's id for the user.
  let subject: String
  let time: Timestamp

  struct Claims: ProviderClaims {
    let iss: IssuerClaim
    let aud: IdentityClaims.Audience
    let iat: IssuedAtClaim
    let nbf: NotBeforeClaim?
    let exp: ExpirationClaim?
    /// A JSON document.
    let events: String

    /// Apple does not promise an expiry. Its tokens have one after a day.
    var expiry: Date { exp?.value ?? iat.value.addingTimeInterval(86_400) }
  }

  /// Nil if the events are malformed.
  init?(_ claims: Claims) {
    guard case .object(let members) = try? JSON(parsing: claims.events.utf8), case .string(let type) = members["type"],
      case .string(let subject) = members["sub"], Identity.isSubject(subject),
      claims.iat.value.timeIntervalSince1970 > 0
    else { return nil }
    self.subject = subject
    time = Self.time(members["event_time"]) ?? Timestamp(claims.iat.value)
    switch type {
    // The second one is an older name.
    case "account-deleted", "account-delete", "consent-revoked": event = .revoked
    case "email-disabled":
      // Without an address that mail can reach, there is nothing to stop.
      guard case .string(let text) = members["email"], let address = try? EmailAddress(parsing: text) else {
        event = nil
        return
      }
      event = .relayStopped(address)
    case "email-enabled": event = .relayStarted
    default: event = nil
    }
  }

  /// Apple documents seconds, and sends milliseconds. Nil for a time that cannot have been.
  private static func time(_ json: JSON?) -> Timestamp? {
    guard case .number(let digits) = json, digits.utf8.count <= 20, let number = Double(digits) else { return nil }
    let seconds = number > 100_000_000_000 ? number / 1000 : number
    guard seconds > 0, seconds < Date().timeIntervalSince1970 + 300 else { return nil }
    return Timestamp(microseconds: Int64(seconds * 1_000_000))
  }
}

extension Identity {
  /// Does what a notification asks for. One that comes again changes nothing, nor does one about an identity that was
  /// linked after the event.
  static func apply(_ notification: AppleNotification, in change: Change) async throws {
    guard let event = notification.event else { return }
    let found: SQL = "provider = 'apple' AND subject = \(notification.subject)"
    let owner: User.ID? = try await change.value("SELECT user_id FROM identities WHERE \(found)")
    guard let owner, try await change.lock(owner, for: .update).contains(owner) else { return }
    // A time of whole seconds stands for all of its second.
    let mine: SQL =
      "\(found) AND user_id = \(owner) AND created_at < \(notification.time)::timestamptz + interval '1 second'"
    switch event {
    case .revoked: try await revoke(mine, of: owner, in: change)
    case .relayStopped(let address): try setRelay(stopped: address, mine, at: notification.time, in: change)
    case .relayStarted: try setRelay(stopped: nil, mine, at: notification.time, in: change)
    }
  }

  /// Unlinks an identity that its user has revoked, and ends the account's sessions. Apple's grant is void already.
  private static func revoke(_ identity: SQL, of user: User.ID, in change: Change) async throws {
    let gone = try await change.rows("DELETE FROM identities WHERE \(identity) RETURNING provider, subject")
    guard let row = gone.first else { return }
    let (provider, subject): (IdentityProvider.Name, String) = (try row["provider"], try row["subject"])
    try change.write("DELETE FROM revoked_identities WHERE provider = \(provider) AND user_id = \(user)")
    // Codes to a relay that the user has left do not arrive.
    let kept = try await change.rows(
      """
      INSERT INTO revoked_identities (provider, subject, user_id)
      SELECT \(provider), \(subject), u.id FROM users AS u
      WHERE u.id = \(user) AND u.password_hash IS NULL
        AND (u.email_verified_at IS NULL OR u.email_key LIKE \("%@" + relayDomain))
        AND NOT EXISTS (SELECT FROM identities WHERE user_id = u.id)
      ON CONFLICT ON CONSTRAINT one_account_per_revoked_identity DO UPDATE
      SET user_id = excluded.user_id, revoked_at = excluded.revoked_at
      """)
    try await Session.endAll(of: user, in: change)
    change.touch(.profile, of: user)
    if kept.affected == 0 { change.mail(.identityUnlinked(user)) }
  }

  /// The domain of the addresses that Apple makes for an app.
  private static let relayDomain = "privaterelay.appleid.com"

  /// A notification that is older than the last one does nothing.
  private static func setRelay(
    stopped address: EmailAddress?, _ identity: SQL, at time: Timestamp, in change: Change
  ) throws {
    try change.write(
      """
      UPDATE identities SET stopped_email = \(address), relay_changed_at = \(time)
      WHERE \(identity) AND (relay_changed_at IS NULL OR relay_changed_at < \(time))
      """)
  }

  /// Gives the account back to a person who had revoked the identity, and who signs in again.
  ///
  /// - Returns: nil if there is no such account.
  static func restore(_ identity: Identity, in change: Change) async throws -> User.ID? {
    let mine: SQL = "provider = \(identity.provider) AND subject = \(identity.subject)"
    let owner: User.ID? = try await change.value("SELECT user_id FROM revoked_identities WHERE \(mine)")
    guard let owner, try await change.lock(owner, for: .update).contains(owner) else { return nil }
    let restored = try await change.rows(
      """
      WITH gone AS (DELETE FROM revoked_identities WHERE \(mine) AND user_id = \(owner) RETURNING *)
      INSERT INTO identities (provider, subject, user_id) SELECT provider, subject, user_id FROM gone
      ON CONFLICT DO NOTHING
      """)
    guard restored.affected == 1 else { return nil }
    change.touch(.profile, of: owner)
    change.mail(.identityLinked(owner))
    return owner
  }
}
