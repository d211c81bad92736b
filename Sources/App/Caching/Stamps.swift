import Postgres

/// Asks which of a user's collections have changed since a phone read them.
enum Stamps {
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

  /// All of a user's stamps: one indexed read, however large the collections are.
  static func read(of user: User.ID, in database: some Querying) async throws -> [Collection: Timestamp] {
    let rows = try await database.rows("SELECT collection, stamp FROM collection_stamps WHERE user_id = \(user)")
    var stamps: [Collection: Timestamp] = [:]
    stamps.reserveCapacity(rows.count)
    for row in rows {
      // A newer release may know more of them than this one.
      guard let collection = Collection.named[try row[0]] else { continue }
      stamps[collection] = try row[1]
    }
    return stamps
  }

  static func read(_ collection: Collection, of user: User.ID, in database: some Querying) async throws -> Timestamp? {
    try await database.value(
      "SELECT stamp FROM collection_stamps WHERE user_id = \(user) AND collection = \(collection)::collection")
  }
}
