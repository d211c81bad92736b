import Crypto
import Foundation
import Postgres

/// The tokens of the forms and pages for visitors. Each use has a key of its own.
struct VisitorTokens: Sendable {
  private static let proofLength = 22

  /// For `/g/<token>`, where the visitor changes the answer.
  let page: IDTokens<Guest>
  /// For the calendar of the event, which cannot change the answer.
  let calendar: IDTokens<Guest>
  /// Proves that a reader has got the page's link by mail.
  private let mail: IDTokens<Guest>
  let forms: FormTokens

  init(keys: SigningKeys) {
    page = IDTokens(keys: keys, label: "muster visitors")
    calendar = IDTokens(keys: keys, label: "muster visitors' calendars")
    mail = IDTokens(keys: keys, label: "muster visitors' mails")
    forms = FormTokens(keys: keys)
  }

  /// The parts of a path of `/g/`.
  struct PageToken {
    let id: Guest.ID
    let kid: String
    /// Empty if the link did not come by mail.
    fileprivate let proof: String
  }

  /// `<token>`, or `<token>.<proof>` in a mail. Nil unless one of the keys made the token.
  func read(_ text: String) -> PageToken? {
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard let first = parts.first, let (id, kid) = page.read(first) else { return nil }
    guard parts.count == 1 || parts[1].utf8.count == Self.proofLength else { return nil }
    return PageToken(id: id, kid: kid, proof: parts.count == 2 ? parts[1] : "")
  }

  /// The token for a link in a mail. The proof is bound to the address, so that it proves nothing about another one.
  func mailed(to visitor: Visitor) -> String? {
    guard let email = visitor.email, let token = page.token(of: visitor.id, kid: visitor.kid),
      let proof = mail.proof(of: visitor.id, with: email.text, kid: visitor.kid)
    else { return nil }
    return "\(token).\(proof)"
  }

  /// Whether a reader of the address's mail got this token.
  func isMailed(_ token: PageToken, to visitor: Visitor) -> Bool {
    guard let email = visitor.email, !token.proof.isEmpty else { return false }
    return mail.isProof(token.proof, of: visitor.id, with: email.text, kid: visitor.kid)
  }
}

/// The tokens that the form of a share link sends back: the link, the time, and the id of the visitor that the form
/// creates. Sending a form twice makes one answer. A form that was never shown is refused. Forms need no cookie.
struct FormTokens: Sendable {
  /// In seconds.
  static let lifetime = 24 * 3600
  private static let label = "mf1"

  private let keys: SigningKeys

  init(keys: SigningKeys) {
    self.keys = keys
  }

  struct Content: Sendable {
    let link: ShareLink.ID
    let visitor: Guest.ID
    let isExpired: Bool
  }

  func token(for link: ShareLink.ID, _ visitor: Guest.ID = .new(), at now: Timestamp = .now()) -> String? {
    keys.token(Self.label, Data(packing: link, visitor, now.microseconds), kid: keys.signing.kid)
  }

  /// Deletes the ids of spent forms that have expired anyway.
  ///
  /// - Returns: how many it deleted.
  static func purge(atMost limit: Int, in database: Database) async throws -> Int {
    try await database.purge("spent_forms", by: "expires_at", upTo: "now()", atMost: limit)
  }

  /// Nil unless one of the keys made the token.
  func read(_ token: String, at now: Timestamp = .now()) -> Content? {
    guard token.utf8.count <= 200, let (_, content) = keys.read(token, Self.label),
      let (link, visitor, time) = content.unpacked(as: ShareLink.ID.self, Guest.ID.self, Int64.self)
    else { return nil }
    return Content(
      link: link, visitor: visitor,
      isExpired: Timestamp(microseconds: time).adding(seconds: Self.lifetime) < now)
  }
}
