import Crypto
import Foundation
import HTTPServer
import Postgres

/// A write with an `Idempotency-Key`. Sent again within 24 hours, it gets the first response and has no second effect.
struct IdempotentRequest: Sendable {
  /// Seconds for which responses are kept.
  static let lifetime = 86_400
  private static let label = "muster idempotency"
  private static let headers: [HTTPField.Name] = [.contentType, .eTag, .location, .cacheControl]

  /// Whether the first request has changed nothing. Then it has left no response: a repeated one gets the current
  /// state.
  var hadNoEffect = false
  /// The event that the first request responded with.
  var event: Event.ID?
  let digest: Data
  private let content: Data
  private let keys: SigningKeys

  /// - Parameters:
  ///   - scope: what the key is unique in, such as the user, the method and the path.
  ///   - content: the parts of the request that must be the same when it is repeated.
  init(_ key: String, scope: [String], content: Data, keys: SigningKeys) {
    digest = Data(SHA256.hash(data: Data((scope + [key]).joined(separator: "\n").utf8)))
    self.content = content
    self.keys = keys
  }

  /// The same for each repetition of the request: what it causes counts once.
  var attempt: UUID { digest.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) } }

  /// A first response that is stored.
  struct Stored {
    let user: User.ID
    let sealed: Data?
    /// The event that it shows, or would show if it were stored.
    let event: Event.ID?
    /// The same, if a block hides one of the users in it by now.
    let outdatedEvent: Event.ID?
  }

  /// A response, and the users whom it concerns besides the one who gets it.
  struct Outcome {
    let response: Response
    /// The users whom the request is about. A block ends the replays: the verb then refuses the repeated request.
    var about: [User.ID] = []
    /// The event that the response shows.
    var event: Event?
  }

  /// The stored response of this request.
  ///
  /// - Throws: `idempotency-key-reused` if the first request had other content.
  func stored(in database: Database) async throws -> Stored? {
    guard let row = try await database.first(selecting) else { return nil }
    try await database.confirm("SELECT FROM idempotency_keys WHERE digest = \(digest)")
    return try stored(in: row)
  }

  private var selecting: SQL {
    """
    SELECT k.user_id, k.kid, k.fingerprint, k.sealed_response, k.event_id, CASE
      WHEN EXISTS (SELECT FROM hidden AS h WHERE h.user_id = k.user_id AND h.hidden_id = ANY(k.shown_ids))
      THEN k.event_id
    END AS outdated_event
    FROM idempotency_keys AS k
    WHERE k.digest = \(digest)
    """
  }

  private func stored(in row: Row) throws -> Stored {
    let fingerprint: Data = try row["fingerprint"]
    // A key that is no longer configured cannot show that the content is the same.
    guard let expected = self.fingerprint(kid: try row["kid"]), expected == fingerprint else {
      throw AppError.idempotencyKeyReused
    }
    return Stored(
      user: try row["user_id"], sealed: try row["sealed_response"], event: try row["event_id"],
      outdatedEvent: try row["outdated_event"])
  }

  /// Runs a verb and stores its response in the verb's transaction, unless one is stored already.
  ///
  /// - Parameter canReadAgain: whether a response to a verb that changes nothing can be read later, and need not be
  ///   stored. The key is stored in any case: a repeated request has no effect, whatever has changed meanwhile.
  /// - Returns: nil if the first request changed nothing and left no response.
  /// - Throws: `request-running` if the first request has not ended.
  func once(
    by user: User.ID, in change: Change, canReadAgain: Bool, _ verb: () async throws -> Outcome
  ) async throws -> Response? {
    if let first = try await begin(in: change) { return try await response(first, in: change) }
    let outcome = try await verb()
    let leavesNone = canReadAgain && change.hasChangedNothing
    try store(
      leavesNone ? nil : try await sealed(outcome.response), of: user, about: outcome.about, showing: outcome.event,
      in: change)
    return outcome.response
  }

  /// A statement that ends the replays of two users about each other. The caller has locked both, and the events that
  /// both see.
  static func forgetting(between one: User.ID, and other: User.ID) -> SQL {
    let pair = [one, other]
    return "DELETE FROM idempotency_keys WHERE user_id = ANY(\(pair)) AND about_user_ids && \(pair)"
  }

  /// The purpose of its turns: "once" in ASCII.
  private static let turns: Int32 = 0x6f6e_6365

  /// Makes sure that this is the only request with the key, until the transaction ends.
  func begin(in change: Change) async throws -> Stored? {
    let lock = digest.prefix(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
    // On a portable database, a concurrent request waits for the first one, and gets its response.
    if change.isPortable { try change.takeTurn(Self.turns, at: "\(Int32(truncatingIfNeeded: lock))::integer") }
    // The lock makes a replay wait for the standby, as in ``Database/confirm(_:)``.
    let rows = try await change.pipeline(
      change.isPortable ? "SELECT true" : "SELECT pg_try_advisory_xact_lock(\(Int64(bitPattern: lock)))",
      "\(selecting) FOR KEY SHARE OF k")
    guard let isFirst = rows[0].first, try isFirst[0] else { throw AppError.requestRunning }
    return try rows[1].first.map(stored(in:))
  }

  /// - Parameter sealed: nil if the response is not stored.
  func store(
    _ sealed: Data?, of user: User.ID, about others: [User.ID] = [], showing event: Event? = nil, in change: Change
  ) throws {
    let kid = keys.signing.kid
    guard let fingerprint = fingerprint(kid: kid) else { return }
    try change.write(
      """
      INSERT INTO idempotency_keys (
        digest, user_id, about_user_ids, event_id, shown_ids, kid, fingerprint, sealed_response
      )
      VALUES (
        \(digest), \(user), \(others.filter { $0 != user }), \(event?.id),
        \(sealed == nil ? [] : (event?.shownIDs ?? []).filter { $0.rawValue != user.rawValue }), \(kid), \(fingerprint),
        \(sealed)
      )
      """)
  }

  private func fingerprint(kid: String) -> Data? {
    keys.derived(kid: kid, label: Self.label + " fingerprint").map {
      Data(HMAC<SHA256>.authenticationCode(for: digest + content, using: $0))
    }
  }

  // MARK: Responses

  /// The first response as it was, and a header that says so. Nil if none was stored. An event that shows a user whom a
  /// block hides by now is read again, and does not exist if the reader no longer sees it.
  func response(_ stored: Stored, in database: some Querying) async throws -> Response? {
    guard let bytes = stored.sealed else { return nil }
    guard let sealed = Sealed(bytes: bytes),
      case .array(let parts)? = try? JSON(parsing: sealed.opened(label: Self.label, keys: keys).utf8), parts.count == 3,
      case .number(let code) = parts[0], let status = Int(code), case .object(let fields) = parts[1],
      case .string(let body) = parts[2]
    else { throw AppError.idempotencyKeyReused }
    var response = Response(status: HTTPResponse.Status(code: status), headers: [.idempotentReplayed: "true"])
    for name in Self.headers {
      if case .string(let value)? = fields[name.canonicalName] { response.headers[name] = value }
    }
    if let event = stored.outdatedEvent {
      let current = Response.event(try await Event.find(event, for: stored.user, in: database))
      response.headers[.eTag] = current.headers[.eTag]
      response.body = current.body
    } else if !body.isEmpty {
      response.body = ResponseBody(ByteBuffer(string: body))
    }
    return response
  }

  private func sealed(_ response: Response) async throws -> Data {
    let body = try await response.body.collect()
    var json = JSONWriter()
    json.raw("[\(response.status.code),")
    json.object { json in
      for name in Self.headers {
        if let value = response.headers[name] { json.member(name: name.canonicalName) { $0.string(value) } }
      }
    }
    json.raw(",")
    json.string(String(buffer: body))
    json.raw("]")
    return try Sealed(json.text, label: Self.label, keys: keys).bytes
  }

  /// Forgets the stored responses that show an event with visitors who are gone: a repeated request then gets the event
  /// as it is. The response to the creation of an event shows no visitors, and stays.
  static func forgettingResponses(showing visitors: [Guest.ID], at event: Event.ID) -> SQL {
    """
    UPDATE idempotency_keys SET sealed_response = NULL
    WHERE event_id = \(event) AND shown_ids && \(visitors) AND sealed_response IS NOT NULL
    """
  }

  /// Deletes rows that are older than 24 hours.
  static func purge(atMost limit: Int, in database: Database) async throws -> Int {
    try await database.purge(
      "idempotency_keys", key: "digest", by: "created_at",
      upTo: "now() - make_interval(secs => \(Double(lifetime)))", atMost: limit)
  }
}

extension Request {
  /// - Throws: 422 unless the header is one word of 1 to 255 visible ASCII characters.
  func idempotencyKey() throws -> String? {
    let keys = headers[values: .idempotencyKey]
    guard let key = keys.first else { return nil }
    guard keys.count == 1, (1...255).contains(key.utf8.count), key.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
    else {
      throw AppError.invalid("Idempotency-Key", .badFormat, "must be 1 to 255 visible ASCII characters")
    }
    return key
  }
}

extension HTTPField.Name {
  static let idempotencyKey = HTTPField.Name("Idempotency-Key")!
  static let idempotentReplayed = HTTPField.Name("Idempotent-Replayed")!
}

extension AppError {
  static let idempotencyKeyReused = AppError(
    .invalid, "idempotency-key-reused", "This Idempotency-Key was used for another request.")
  static let requestRunning = AppError(
    .conflict, "request-running", "A request with this Idempotency-Key is still running.", retryAfter: 1)
}
