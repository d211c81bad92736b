import Foundation
import Postgres

/// Decides whether a mail that anyone can cause may leave: one to an address that no one has proven to the account or
/// event that the mail is about. Codes and resets for the owners of proven addresses also pass here, but use up budgets
/// of their own, so that strangers' forms never stop them.
///
/// It counts in a short transaction of its own, before the change that queues the mail locks anything. A row is an
/// attempt at its own time: nothing is booked ahead. Only mails that may leave are counted, so a flood writes no more
/// rows than the limits allow.
struct MailGate: Sendable {
  /// A request for a mail.
  enum Kind: String, Sendable, SQLValue {
    case visitorConfirm = "visitor-confirm"
    case verifyEmail = "verify-email"
    case resetPassword = "reset-password"
    case signInCode = "sign-in-code"
    case emailChanged = "email-changed"
  }

  struct Attempt: Sendable {
    /// The request's id, which stays the same when it is repeated.
    let id: UUID
    /// How often it has asked, this time included.
    var ordinal = 1
    let kind: Kind
    let mailbox: Mailbox
    /// The client's address.
    let origin: String
    let budget: Budget
    /// The host whose link causes the mail.
    var host: User.ID?
    /// False for a mail that will not be queued in any case. It costs the same statements, and counts nothing.
    var counts = true
  }

  enum Budget: String, Sendable, SQLValue {
    case stranger
    /// For the owner of an address that the account has proven. Anyone can ask for it.
    case owner
    /// The same, asked for in a network where the account has had a session: requests from elsewhere use up nothing.
    case known
    /// The same, asked for by the owner's own session.
    case session
  }

  enum Decision: Sendable {
    case open(Pass)
    case held(Limit)
    /// The mailbox has opted out of such mails.
    case optedOut

    var pass: Pass? { if case .open(let pass) = self { pass } else { nil } }
    var isHeld: Bool { if case .held = self { true } else { false } }
  }

  /// The right to queue a mail. Only the gate gives it.
  struct Pass: Sendable {
    /// When the attempt was counted. Nil if an earlier one has counted it, or if it counts nothing.
    fileprivate let countedAt: Timestamp?

    fileprivate init(countedAt: Timestamp?) {
      self.countedAt = countedAt
    }
  }

  enum Limit: String, CaseIterable, Sendable {
    case mailbox, network, host, domain, installation
    /// The host's address is not verified, and the account is less than a day old.
    case newHost = "new-host"
    /// `MUSTER_VISITOR_MAILS` is off.
    case off
  }

  // MARK: Limits, in 24 hours

  /// Mails to one mailbox, and the most that one network may cause: others must not use up all that the owner asks for.
  private static let maximumPerMailbox = 5
  private static let maximumPerMailboxAndNetwork = 3
  /// Mails of one kind to the owner of a proven address.
  private static let maximumPerOwner = 10
  private static let maximumPerOwnerAndNetwork = 5
  static let maximumPerHost = 2000
  static let maximumPerDomain = 2000
  static let maximumPerInstallation = 10_000
  static let maximumForOwners = 50_000
  /// Of mails from one IPv4 /24 or IPv6 /48: a tenth of what all share. A /56 and a /64 have less.
  static let maximumPerNetwork = maximumPerInstallation / 10
  static let maximumPerSite = 500
  static let maximumPerSubnet = 250
  /// One network takes at most this part of a budget that others share.
  private static let shares = 10

  let optOuts: MailOptOuts
  /// False if `MUSTER_VISITOR_MAILS` is off.
  let mailsVisitors: Bool
  private let limitsStrangers: Bool
  /// Seconds after which an account causes mails to strangers, although it has not verified an address.
  private let hostAge: Int
  private let admitted: CounterCell
  private let declined: CounterCell
  private let held: [Limit: CounterCell]

  init(
    _ optOuts: MailOptOuts, mailsVisitors: Bool, limitsStrangers: Bool, hostAge: Int, metrics: MetricsRegistry
  ) {
    self.optOuts = optOuts
    self.mailsVisitors = mailsVisitors
    self.limitsStrangers = limitsStrangers
    self.hostAge = hostAge
    admitted = metrics.cell("muster_mails_admitted_total", of: CounterCell.self)
    declined = metrics.cell("muster_mails_held_total", [("limit", "opt-out")], of: CounterCell.self)
    held = Dictionary(
      uniqueKeysWithValues: Limit.allCases.map {
        ($0, metrics.cell("muster_mails_held_total", [("limit", $0.rawValue)], of: CounterCell.self))
      })
  }

  // MARK: Deciding

  /// Decides about a mail, and counts it if it may leave. An attempt that was counted before may leave, and counts once.
  func decide(on attempt: Attempt, in database: Database) async throws -> Decision {
    let decision = try await decision(on: attempt, in: database)
    guard attempt.counts else { return decision }
    switch decision {
    case .open: admitted.increment(by: 1)
    case .optedOut: declined.increment(by: 1)
    case .held(let limit): held[limit]?.increment(by: 1)
    }
    return decision
  }

  private func decision(on attempt: Attempt, in database: Database) async throws -> Decision {
    if attempt.kind == .visitorConfirm, !mailsVisitors { return .held(.off) }
    let prints = Prints(attempt, optOuts.keys)
    let results = try await database.batch(
      // Each counts what the ones before it have added. In one order, so that no two wait for each other. The next
      // statement sees what was committed meanwhile.
      prints.takingTurns(isPortable: database.isPortable),
      deciding(attempt, prints))
    let row = results[1][0]
    let (word, countedAt): (String, Timestamp?) = (try row["word"], try row["counted_at"])
    switch word {
    case "open", "counted": return .open(Pass(countedAt: countedAt))
    // Of one request with several addresses at once, the first one is mailed.
    case "other": return .held(.mailbox)
    case "opted-out": return .optedOut
    default: return .held(Limit(rawValue: word) ?? .installation)
    }
  }

  /// Counts an attempt no longer, because the change that it was for was refused, and nothing was queued. It stays
  /// counted if another request counted it, or has asked for the same mail since: that one may have queued it.
  private func takeBack(_ attempt: Attempt, _ pass: Pass, in database: Database) async throws {
    guard let countedAt = pass.countedAt else { return }
    let prints = Prints(attempt, optOuts.keys)
    try await database.batch(
      prints.takingTurns(isPortable: database.isPortable),
      "DELETE FROM mail_attempts WHERE \(own(attempt, prints)) AND asked_at = \(countedAt)")
  }

  /// A condition on `mail_attempts`: the row of an attempt.
  private func own(_ attempt: Attempt, _ prints: Prints) -> SQL {
    "\(same(attempt)) AND mailbox = \(prints.mailbox)"
  }

  /// The same for an attempt that names any address.
  private func same(_ attempt: Attempt) -> SQL {
    "id = \(attempt.id) AND ordinal = \(Int32(clamping: attempt.ordinal))"
  }

  /// Decides, runs the change that queues the mail, and takes the attempt back if the change is refused.
  func passing<Value: Sendable>(
    _ attempt: Attempt, in database: Database, _ change: (Decision) async throws -> Value
  ) async throws -> Value {
    let decision = try await decide(on: attempt, in: database)
    do {
      return try await change(decision)
    } catch let refusal as AppError {
      if let pass = decision.pass { try await takeBack(attempt, pass, in: database) }
      throw refusal
    }
  }

  /// The fingerprints of an attempt.
  private struct Prints {
    /// Under all keys; the first is the one that counts.
    let mailboxes: [Data]
    let domain: Data
    let network: Data
    let site: Data?
    let subnet: Data?
    private let turns: [Int32]

    init(_ attempt: Attempt, _ keys: AddressKeys) {
      let networks = ClientNetworks(attempt.origin)
      mailboxes = keys.fingerprints(of: attempt.mailbox)
      domain = keys.fingerprint("domain", attempt.mailbox.domain)
      network = keys.network(of: attempt.origin)
      site = networks.site.map { keys.fingerprint("network", $0) }
      subnet = networks.subnet.map { keys.fingerprint("network", $0) }
      var subjects = [mailboxes[0], network, keys.fingerprint("attempt", attempt.id.uuidString)]
      // The installation has no turn: it would make all forms wait for each other. Its limit is exact to within the
      // number of forms at one time.
      if attempt.budget == .stranger { subjects.append(domain) }
      if let host = attempt.host { subjects.append(keys.fingerprint("host", host.description)) }
      turns = subjects.map { $0.prefix(4).reduce(0 as UInt32) { $0 << 8 | UInt32($1) } }
        .map { Int32(bitPattern: $0) }.sorted()
    }

    func takingTurns(isPortable: Bool) -> SQL {
      Turns.taking(Self.purpose, atEach: "SELECT unnest(\(turns))", isPortable: isPortable)
    }

    /// "gate" in ASCII.
    private static let purpose: Int32 = 0x6761_7465

    var mailbox: Data { mailboxes[0] }
  }

  private func deciding(_ attempt: Attempt, _ prints: Prints) -> SQL {
    """
    WITH decision AS MATERIALIZED (
      SELECT CASE
        \(attempt.budget == .stranger ? refusals(attempt, prints) : "")
        WHEN EXISTS (SELECT FROM mail_attempts WHERE \(own(attempt, prints))) THEN 'counted'
        WHEN EXISTS (SELECT FROM mail_attempts WHERE \(same(attempt))) THEN 'other'
        \(attempt.budget == .stranger ? strangersLimits(attempt, prints) : ownersLimits(attempt, prints))
        ELSE 'open'
      END AS word
    ),
    attempt AS (
      INSERT INTO mail_attempts (id, ordinal, budget, kind, mailbox, domain, network, site, subnet, host_id)
      SELECT \(attempt.id), \(Int32(clamping: attempt.ordinal)), \(attempt.budget), \(attempt.kind),
        \(prints.mailbox), \(prints.domain), \(prints.network), \(prints.site), \(prints.subnet), \(attempt.host)
      FROM decision
      WHERE word = 'open' AND \(attempt.counts)
      RETURNING asked_at
    ),
    -- The first request no longer takes it back.
    repeated AS (
      UPDATE mail_attempts SET asked_at = asked_at + interval '1 microsecond'
      FROM decision
      WHERE word = 'counted' AND \(own(attempt, prints))
    )
    SELECT word, (SELECT asked_at FROM attempt) AS counted_at FROM decision
    """
  }

  /// The refusals that do not depend on counts.
  private func refusals(_ attempt: Attempt, _ prints: Prints) -> SQL {
    """
    WHEN EXISTS (SELECT FROM mail_optouts WHERE mailbox = ANY(\(prints.mailboxes))) THEN 'opted-out'
    WHEN \(attempt.host) IS NOT NULL AND NOT \(mayMailStrangers("\(attempt.host)")) THEN 'new-host'
    """
  }

  /// A SQL condition: whether a host causes mails to strangers.
  ///
  /// - Parameter host: an id, as a value or a column.
  func mayMailStrangers(_ host: SQL) -> SQL {
    let isKnown: SQL =
      limitsStrangers
      ? "(email_verified_at IS NOT NULL OR created_at <= now() - make_interval(secs => \(Double(hostAge))))" : "true"
    return "EXISTS (SELECT FROM users WHERE id = \(host) AND \(isKnown))"
  }

  /// The first mail of a day to a mailbox comes from a reserve: other mails use at most three quarters of what strangers
  /// share.
  private func strangersLimits(_ attempt: Attempt, _ prints: Prints) -> SQL {
    guard limitsStrangers else { return "" }
    let (mailbox, network): (SQL, SQL) = ("mailbox = \(prints.mailbox)", "network = \(prints.network)")
    let (host, domain): (SQL, SQL) = ("host_id = \(attempt.host)", "domain = \(prints.domain)")
    func limit(_ limit: Limit, _ rows: SQL, _ most: Int) -> SQL {
      exceeding(limit, "budget = 'stranger' AND \(rows)", most)
    }
    func shared(_ name: Limit, _ rows: SQL, _ most: Int) -> SQL {
      """
      \(limit(name, rows, most))
      WHEN EXISTS (SELECT FROM \(today) AND budget = 'stranger' AND \(mailbox))
        AND \(reached("budget = 'stranger' AND \(rows)", most / 4 * 3)) THEN \(name.rawValue)
      """
    }
    return """
      \(limit(.mailbox, mailbox, Self.maximumPerMailbox))
      \(limit(.mailbox, "\(mailbox) AND \(network)", Self.maximumPerMailboxAndNetwork))
      \(shared(.network, network, Self.maximumPerNetwork))
      \(shared(.network, "\(network) AND site = \(prints.site)", Self.maximumPerSite))
      \(shared(.network, "\(network) AND subnet = \(prints.subnet)", Self.maximumPerSubnet))
      \(shared(.host, host, Self.maximumPerHost))
      \(shared(.host, "\(host) AND \(network)", Self.maximumPerHost / Self.shares))
      \(attempt.mailbox.isAtProvider ? "" : shared(.domain, domain, Self.maximumPerDomain))
      \(attempt.mailbox.isAtProvider
        ? "" : shared(.domain, "\(domain) AND \(network)", Self.maximumPerDomain / Self.shares))
      \(shared(.installation, "true", Self.maximumPerInstallation))
      """
  }

  private func ownersLimits(_ attempt: Attempt, _ prints: Prints) -> SQL {
    let mine: SQL = "budget = \(attempt.budget) AND kind = \(attempt.kind) AND mailbox = \(prints.mailbox)"
    // What anyone can ask for uses up nothing of what is kept for owners.
    let all: SQL = attempt.budget == .owner ? "budget = 'owner'" : "budget IN ('known', 'session')"
    return """
      \(exceeding(.mailbox, mine, Self.maximumPerOwner))
      \(exceeding(.mailbox, "\(mine) AND network = \(prints.network)", Self.maximumPerOwnerAndNetwork))
      \(exceeding(.network, "\(all) AND network = \(prints.network)", Self.maximumForOwners / Self.shares))
      \(exceeding(.installation, all, Self.maximumForOwners))
      """
  }

  private var today: SQL { "mail_attempts WHERE asked_at > now() - interval '24 hours'" }

  private func exceeding(_ limit: Limit, _ rows: SQL, _ most: Int) -> SQL {
    "WHEN \(reached(rows, most)) THEN \(limit.rawValue)"
  }

  /// Reads no more rows than the limit.
  private func reached(_ rows: SQL, _ most: Int) -> SQL {
    "(SELECT count(*) FROM (SELECT FROM \(today) AND \(rows) LIMIT \(most)) AS counted) >= \(most)"
  }

  /// Deletes attempts older than 24 hours.
  ///
  /// - Returns: how many rows it deleted.
  static func purge(atMost limit: Int, in database: Database) async throws -> Int {
    // The rows are not locked by anyone else.
    try await database.execute(
      """
      DELETE FROM mail_attempts WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM mail_attempts WHERE asked_at <= now() - interval '24 hours' ORDER BY asked_at LIMIT \(limit)
      ))
      """
    ).affected
  }
}
