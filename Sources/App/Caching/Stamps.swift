import Postgres

/// When each of a user's collections changed last.
struct Stamps: Sendable {
  /// What a phone says of its copy.
  enum Claim: Equatable, Sendable {
    /// The stamp that came with the copy, echoed.
    case echo(Timestamp)
    /// The phone's own clock when it read the copy.
    case clock(Timestamp)
    /// No copy.
    case none

    /// How far a phone's clock may be wrong, in seconds.
    private static let margin = 60

    /// - Parameter text: RFC 3339; six digits of fraction make it an echo.
    init?(_ text: String) {
      var digits = 0
      guard let time = Timestamp(rfc3339: text, fractionDigits: &digits) else { return nil }
      self = digits == 6 ? .echo(time) : .clock(time)
    }

    /// An echo must equal the stamp, and not merely be as late: after a restored backup, stamps begin again below it.
    func isFresh(at stamp: Timestamp, now: Timestamp) -> Bool {
      switch self {
      case .echo(let time): time == stamp
      case .clock(let time): stamp.adding(seconds: Self.margin) < time && time <= now
      case .none: false
      }
    }
  }

  private var all: [(collection: Collection, stamp: Timestamp)] = []

  /// - Parameter rows: of ``reads(in:)``.
  init(_ rows: [Row]) throws {
    all.reserveCapacity(rows.count)
    for row in rows {
      // A newer release may know more of them than this one.
      guard let collection = Collection.named[try row[1]] else { continue }
      all.append((collection, try row[2]))
    }
  }

  subscript(collection: Collection) -> Timestamp? {
    all.first { $0.collection == collection }?.stamp
  }

  /// The rows of each user's stamps: nil for one who has none, and so no account.
  static func reads(in database: Database) -> GatheredReads<User.ID, [Row]> {
    GatheredReads(in: database) { users, database in
      // An array that is no plain parameter: its length changes nothing about the plan then, and the server keeps one.
      let these: SQL = users.count == 1 ? "\(users[0])" : "ANY(ARRAY(SELECT unnest(\(users)::uuid[])))"
      let rows = try await database.rows(
        "SELECT user_id, collection, stamp FROM collection_stamps WHERE user_id = \(these)")
      return try Dictionary(grouping: rows) { try $0[0] }
    }
  }

  static func read(_ collection: Collection, of user: User.ID, in database: some Querying) async throws -> Timestamp? {
    try await database.value(
      "SELECT stamp FROM collection_stamps WHERE user_id = \(user) AND collection = \(collection)::collection")
  }
}
