import Foundation
import Postgres

/// The time of the last change of each of a user's collections.
public struct Stamps: Sendable {
  /// The time that a phone sends to ask whether its copy of a collection is fresh.
  enum Validator: Equatable, Sendable {
    /// The stamp that came with the copy.
    case echo(Timestamp)
    /// The time on the phone's own clock when it read the copy.
    case clock(Timestamp)
    /// The phone has no copy.
    case none
    /// The stamp of the copy is not a time.
    case malformed

    /// How far a phone's clock may be wrong, in seconds.
    private static let margin = 60

    /// - Parameter text: RFC 3339. Six fractional digits make it an echo.
    init(_ text: String) {
      var digits = 0
      guard let time = Timestamp(rfc3339: text, fractionDigits: &digits) else {
        self = .malformed
        return
      }
      self = digits == 6 ? .echo(time) : .clock(time)
    }

    /// An echo must equal the stamp. A later echo is not fresh: after a backup is restored, stamps start again below
    /// it.
    func isFresh(at stamp: Timestamp, now: Timestamp) -> Bool {
      switch self {
      case .echo(let time): time == stamp
      case .clock(let time): stamp.adding(seconds: Self.margin) < time && time <= now
      case .none, .malformed: false
      }
    }
  }

  private let all: [(collection: Collection, stamp: Timestamp)]

  /// - Parameter row: a row of ``reads(in:)``.
  init(_ row: Row) throws {
    all = try Collection.allCases.enumerated().map { index, collection in (collection, try row[index + 1]) }
  }

  subscript(collection: Collection) -> Timestamp? {
    all.first { $0.collection == collection }?.stamp
  }

  /// Loads the row with each user's stamps. A user without a row has no account.
  static func reads(in database: Database) -> DataLoader<User.ID, Row> {
    DataLoader(in: database) { users, database in try await rows(of: users, in: database) }
  }

  /// The stamps of several users, in one statement. A user without stamps has no account.
  static func read(of users: [User.ID], in database: some Querying) async throws -> [User.ID: Stamps] {
    try await rows(of: users, in: database).mapValues { try Stamps($0) }
  }

  private static func rows(of users: [User.ID], in database: some Querying) async throws -> [User.ID: Row] {
    // The subquery hides the array's length from the planner, so that the server keeps one plan.
    let these: SQL = users.count == 1 ? "\(users[0])" : "ANY(ARRAY(SELECT unnest(\(users)::uuid[])))"
    let rows = try await database.rows(
      "SELECT user_id, \(Collection.columns) FROM user_stamps WHERE user_id = \(these)")
    return Dictionary(try rows.map { (try $0[0], $0) }) { first, _ in first }
  }

  static func read(_ collection: Collection, of user: User.ID, in database: some Querying) async throws -> Timestamp? {
    try await database.value("SELECT \(unescaped: collection.column) FROM user_stamps WHERE user_id = \(user)")
  }

  /// An expression for a column's next stamp, over the locked row `s` of `user_stamps`. The stamp rises by at least
  /// `step`.
  ///
  /// While the clock is behind the stamp because it was set back, the stamp rises by a random amount. With a fixed
  /// step, a change after a restored backup could get the stamp of a change that was lost.
  static func next(_ column: SQL, step: SQL = "interval '1 microsecond'") -> SQL {
    """
    greatest(clock_timestamp(), s.\(column) + \(step) + CASE WHEN s.\(column) < clock_timestamp() \
    THEN interval '0' ELSE random() * interval '10 milliseconds' END)
    """
  }

  /// Whether a change failed because a user whom it touches was deleted meanwhile. The change must be repeated without
  /// that user.
  static func isOfDeletedUser(_ error: PostgresError) -> Bool {
    error.constraint == "stamps_belong_to_a_user"
  }
}

extension Stamps {
  /// Users or events whose stamps move in one transaction.
  static let moveBatch = 1000

  /// Moves the stamps of all users, so that phones read their lists again after a change that moved no stamps, such as
  /// a new `MUSTER_PUBLIC_URL` or an undone migration. Works in batches and in lock order, so that the service can keep
  /// running.
  ///
  /// - Parameter collections: the collections whose stamps move.
  /// - Returns: the number of users.
  @discardableResult
  public static func move(_ collections: [Collection] = Collection.allCases, in database: Database) async throws -> Int
  {
    var count = 0
    var place: UUID? = .zero
    while let after = place {
      let users = try await database.rows(
        "SELECT user_id FROM user_stamps WHERE user_id > \(after) ORDER BY user_id LIMIT \(moveBatch)")
      let ids: [UUID] = try users.map { try $0[0] }
      place = ids.last
      guard !ids.isEmpty else { break }
      try await database.change { change in
        for collection in collections {
          // Users who were deleted meanwhile have no stamps.
          change.touch(collection, ofUsersIn: "SELECT user_id FROM user_stamps WHERE user_id = ANY(\(ids))")
        }
      }
      count += ids.count
    }
    if collections.contains(.events) { try await Event.moveAllStamps(in: database) }
    return count
  }
}

/// A complete collection for a validation: the items of all pages of its GET.
struct Snapshot: Sendable {
  /// In bytes of JSON. Phones read a longer collection page by page.
  static let maximumLength = 64 << 10

  /// A JSON array; nil if it would be too long.
  let items: [UInt8]?
  /// One for each item, if they are wanted.
  let digests: [String]?

  init(_ list: Collection.Items, digests: ItemDigests? = nil) {
    var json = JSONWriter()
    var found: [String] = []
    var isComplete = list.next == nil
    json.raw("[")
    for (index, item) in list.items.enumerated() where isComplete {
      if index > 0 { json.raw(",") }
      let start = json.count
      item.write(to: &json)
      isComplete = json.count < Self.maximumLength
      if let digests { json.withBytes(from: start) { found.append(digests.digest(of: $0)) } }
    }
    json.raw("]")
    items = isComplete ? json.bytes : nil
    self.digests = isComplete && digests != nil ? found : nil
  }
}
