import Foundation
import Postgres

/// A mail on its way to the service that writes and sends it.
public struct OutgoingMail: Sendable {
  /// The same at every attempt.
  public let id: String
  /// `verify-email`, `reset-password`, `sign-in-code`, `password-changed`, `email-changed`, `identity-linked`
  /// or `identity-unlinked`; `visitor-` and a ``VisitorMail/Kind``.
  public let type: String
  public let to: String
  /// Nil for a visitor.
  public let username: String?
  /// Nil if no one has proven the address, because anyone may have chosen the name.
  public let displayName: String?
  /// The six digits that the reader may type instead of presenting the token; nil in all mails but `sign-in-code`.
  public let code: String?
  /// The token that the reader must present, and its expiry; nil in mails that only inform.
  public let token: String?
  public let expiresAt: Timestamp?
  /// In a mail that verifies an address: `registration`, or `change`, whose token works only for the account's own
  /// session. Nil in all others.
  public let proves: String?
  /// The page where the reader presents the token; nil if there is none.
  public let tokenURL: String?
  /// The time of the change that caused the mail.
  public let createdAt: Timestamp
  /// The trace of the request that caused the mail.
  let trace: Trace?
  /// Ends all mails to the address that anyone can cause: for a link in the mail, and for the header `List-Unsubscribe`
  /// (RFC 8058). Nil for a proven address.
  public var optOutURL: String?
  /// The contents of a mail to a visitor.
  public var letter: VisitorLetter?
}

extension OutgoingMail {
  static let queue = LeaseQueue(
    table: "mails", chain: nil,
    columns: "q.mail_id, q.type, q.mail_token_id, q.payload, q.trace, q.visitor_id, q.user_id", typePlace: 1,
    userPlace: 6)

  /// Seconds after which a mail that still fails becomes a dead letter: a week.
  private static let patience = 7 * 86_400

  static func source(
    _ mailer: any MailSender, keys: SigningKeys, gate: MailGate, publicURL: PublicURL, in database: Database
  ) -> Dispatcher.Source {
    let tokens = VisitorTokens(keys: keys)
    let policy = DeliveryState.Policy(patience: patience, longestPause: .milliseconds(250))
    return Dispatcher.Source(queue: queue, policy: policy) { rows in
      let reread = try await reread(rows, in: database)
      var readers: [Int64: Guest.ID] = [:]
      for row in rows { readers[row.id] = try row.fields[5] }
      let facts = try await VisitorLetter.facts(about: Array(readers.values), gate, in: database)
      let unproven = facts.values.compactMap(\.unprovenAddress) + reread.values.compactMap(\.unprovenAddress)
      let optOuts = OptOuts(
        addresses: try await gate.optOuts.among(Set(unproven), in: database), keys: gate.optOuts.keys,
        base: publicURL.text)
      return Dictionary(
        uniqueKeysWithValues: rows.compactMap { row in
          reread[row.id].map { reread in
            switch reread.expiry {
            case .none, .at: break
            case .unforwarded: return (row.id, .withdrawn)
            case .over: return (row.id, Content.hasExpired(row) ? .refused(expired) : .withdrawn)
            }
            guard let visitor = readers[row.id] else {
              return (row.id, verdict(on: row, reread, optOuts, mailer, keys))
            }
            guard gate.mailsVisitors else { return (row.id, .withdrawn) }
            return (row.id, verdict(on: row, to: facts[visitor], optOuts, mailer, tokens))
          }
        })
    }
  }

  /// The addresses among a batch's that get no mails, and the links for the others.
  private struct OptOuts {
    let addresses: Set<String>
    let keys: AddressKeys
    let base: String

    func url(for address: String?) -> String? {
      address.flatMap { keys.optOutToken(of: Mailbox($0)) }.map { "\(base)/m/\($0)" }
    }
  }

  /// The facts that are read again before a mail is sent.
  private struct Reread {
    let expiry: Expiry
    /// The address, unless the account has proven it.
    let unprovenAddress: String?
  }

  /// When a mail's token expires.
  private enum Expiry {
    /// The mail has no token.
    case none
    case at(Timestamp)
    /// The token was used, replaced or deleted, or has expired: the mail is useless.
    case over
    /// Apple's relay does not forward to the reader.
    case unforwarded
  }

  /// No one chose this end of a mail, so it becomes a dead letter.
  private static let expired = DeliveryFailure(
    description: "the token expired before the mail was sent", remedy: .none)

  /// Rows that are no longer leased are missing.
  private static func reread(_ rows: [LeasedRow], in database: Database) async throws -> [Int64: Reread] {
    let found = try await database.rows(
      """
      SELECT q.id, q.mail_token_id IS NULL, t.expires_at,
        EXISTS (
          SELECT FROM identities AS i
          WHERE i.stopped_email_key = coalesce(v.email_key, ascii_folded(q.payload->>'to'))
        ),
        CASE WHEN q.payload->>'isProven' = 'false' THEN q.payload->>'to' END
      FROM \(queue.rows(of: rows.map(\.lease)))
      LEFT JOIN mail_tokens AS t
        ON t.id = q.mail_token_id AND t.expires_at > clock_timestamp() AND isfinite(t.expires_at)
      LEFT JOIN visitors AS v ON v.id = q.visitor_id
      """)
    return Dictionary(
      uniqueKeysWithValues: try found.map { row in
        let (id, hasNoToken, time): (Int64, Bool, Timestamp?) = (try row[0], try row[1], try row[2])
        let expiry: Expiry = try row[3] ? .unforwarded : hasNoToken ? .none : time.map { .at($0) } ?? .over
        return (id, Reread(expiry: expiry, unprovenAddress: try row[4]))
      })
  }

  private static func verdict(
    on row: LeasedRow, _ reread: Reread, _ optOuts: OptOuts, _ mailer: any MailSender, _ keys: SigningKeys
  ) -> Dispatcher.Verdict {
    if let address = reread.unprovenAddress, optOuts.addresses.contains(address) { return .withdrawn }
    do {
      let content = try Content(row)
      let optOutURL = optOuts.url(for: reread.unprovenAddress)
      return .send(
        Dispatcher.Send(channel: .mail) {
          var mail = try content.mail(reread.expiry, keys: keys, base: optOuts.base)
          mail.optOutURL = optOutURL
          try await mailer.send(mail)
        })
    } catch {
      return .refused(DeliveryFailure(description: "the row is malformed: \(Swift.type(of: error))", remedy: .none))
    }
  }

  /// - Parameter facts: nil if the visitor is gone.
  private static func verdict(
    on row: LeasedRow, to facts: VisitorLetter.Facts?, _ optOuts: OptOuts, _ mailer: any MailSender,
    _ tokens: VisitorTokens
  ) -> Dispatcher.Verdict {
    do {
      let kind = try VisitorMail.Kind(type: row.fields[1])
      guard let facts, let email = facts.visitor.email, facts.wants(kind) else { return .withdrawn }
      if kind == .confirm, optOuts.addresses.contains(email.text) { return .withdrawn }
      guard let createdAt = row.createdAt else { throw DeliveryFailure(description: "the row's time is out of range") }
      let document: JSONDocument = try row.fields[3]
      let changes = try JSONDecoder().decode(Changes.self, from: Data(document.text.utf8)).changes ?? []
      let letter = facts.letter(kind, changes: Array(Set(changes)).sorted(), base: optOuts.base, tokens)
      guard let letter else {
        throw DeliveryFailure(description: "MUSTER_REFRESH_TOKEN_KEYS lacks the key of this visitor's page")
      }
      let (id, stored): (UUID, String?) = (try row.fields[0], try row.fields[4])
      let mail = OutgoingMail(
        id: id.uuidString.lowercased(), type: kind.name, to: email.text, username: nil,
        displayName: kind == .confirm ? nil : facts.visitor.name, code: nil, token: nil,
        expiresAt: kind == .confirm ? facts.lapsesAt : nil, proves: nil, tokenURL: nil, createdAt: createdAt,
        trace: stored.flatMap { Trace(stored: $0) }, optOutURL: optOuts.url(for: facts.unprovenAddress),
        letter: letter)
      return .send(Dispatcher.Send(channel: .mail) { try await mailer.send(mail) })
    } catch let error as DeliveryFailure {
      return .refused(error)
    } catch {
      return .refused(DeliveryFailure(description: "the row is malformed: \(Swift.type(of: error))", remedy: .none))
    }
  }

  private struct Changes: Decodable {
    let changes: [String]?
  }

  /// The content of a row.
  private struct Content {
    let id: UUID
    let type: String
    let createdAt: Timestamp
    let tokenID: MailToken.ID?
    let payload: Payload
    let trace: Trace?

    struct Payload: Decodable {
      let to: String
      let username: String
      let displayName: String
      let kid: String?
      let purpose: MailToken.Purpose?
      let proves: String?
      /// Nil in mails that only proven addresses get.
      let isProven: Bool?
    }

    init(_ row: LeasedRow) throws {
      guard let createdAt = row.createdAt else { throw DeliveryFailure(description: "the row's time is out of range") }
      self.createdAt = createdAt
      (id, type, tokenID) = (try row.fields[0], try row.fields[1], try row.fields[2])
      let document: JSONDocument = try row.fields[3]
      let stored: String? = try row.fields[4]
      trace = stored.flatMap { Trace(stored: $0) }
      payload = try JSONDecoder().decode(Payload.self, from: Data(document.text.utf8))
    }

    /// Whether the time of the mail's token has passed, although nothing was wrong with it.
    static func hasExpired(_ row: LeasedRow) -> Bool {
      guard let content = try? Content(row), let purpose = content.payload.purpose else { return false }
      return content.createdAt.adding(seconds: purpose.lifetime) <= .now()
    }

    /// The mail, with the text of its token.
    func mail(_ expiry: Expiry, keys: SigningKeys, base: String) throws -> OutgoingMail {
      var code: String?
      var token: String?
      var expiresAt: Timestamp?
      if case .at(let time) = expiry, let tokenID {
        guard let kid = payload.kid, let purpose = payload.purpose else {
          throw DeliveryFailure(description: "the row does not say how its token is made", remedy: .none)
        }
        (token, expiresAt) = (MailToken.text(of: tokenID, for: purpose, kid: kid, keys: keys), time)
        guard token != nil else {
          throw DeliveryFailure(description: "MUSTER_REFRESH_TOKEN_KEYS lacks the key \(kid) of this mail's token")
        }
        if purpose == .signInCode { code = SignInCode.text(of: tokenID, kid: kid, keys: keys) }
      }
      return OutgoingMail(
        id: id.uuidString.lowercased(),
        type: type.hasPrefix(Mail.prefix) ? String(type.dropFirst(Mail.prefix.count)) : type, to: payload.to,
        username: payload.username, displayName: payload.isProven == false ? nil : payload.displayName, code: code,
        token: token,
        expiresAt: expiresAt, proves: payload.proves, tokenURL: pageURL(for: token, base: base), createdAt: createdAt,
        trace: trace, optOutURL: nil, letter: nil)
    }

    private func pageURL(for token: String?, base: String) -> String? {
      guard let token, let page = payload.purpose.flatMap(AddressPageRoutes.path) else { return nil }
      return "\(base)/\(page)/\(token)"
    }
  }
}
