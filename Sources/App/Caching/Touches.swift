import Postgres
import Synchronization

/// The users whose stamps a change moves, and which stamps. For sets of collections, see ``Collection/bit``.
struct Touches {
  var users: [User.ID: Int32] = [:]
  var queries: [(users: SQL, bits: Int32)] = []

  var isEmpty: Bool { users.isEmpty && queries.isEmpty }

  private var bits: Int32 { users.values.reduce(0, |) | queries.reduce(0) { $0 | $1.bits } }

  /// One pass over all touched users in id order, so that no two changes deadlock. A stamp is made while its row is
  /// locked, so the stamps of a collection rise in commit order and never repeat.
  var stamping: SQL? {
    let bits = bits
    guard bits != 0 else { return nil }
    var users: [SQL] = queries.map { query in
      "SELECT user_id, \(query.bits) FROM (\(query.users)) AS queried (user_id)"
    }
    if !self.users.isEmpty {
      users.append("SELECT * FROM unnest(\(Array(self.users.keys)), \(Array(self.users.values)))")
    }
    let text = Self.text(bits)
    // The row exists as long as the user does. For a deleted user, the insert violates the foreign key, and the change
    // is repeated: see `Database.change`. The inserted values only mark the columns to move.
    return """
      INSERT INTO user_stamps AS s (user_id\(unescaped: text.columns))
      SELECT user_id\(unescaped: text.marks)
      FROM (
        \(users.joined(separator: "\nUNION ALL "))
      ) AS touched (user_id, bits)
      WHERE user_id IS NOT NULL
      GROUP BY user_id
      ORDER BY user_id
      ON CONFLICT (user_id) DO UPDATE SET
        \(unescaped: text.stamps)
      """
  }

  /// The parts of the statement that depend on the collections.
  private struct Text {
    let columns: String
    let marks: String
    let stamps: String
  }

  private static let texts = Mutex<[Int32: Text]>([:])

  private static func text(_ bits: Int32) -> Text {
    if let text = texts.withLock({ $0[bits] }) { return text }
    let collections = Collection.allCases.filter { bits & $0.bit != 0 }
    let columns = collections.map { ", \($0.column)" }
    let marks = collections.map { ", CASE WHEN bit_or(bits) & \($0.bit) > 0 THEN now() ELSE '-infinity' END" }
    let stamps = collections.map(\.column).map {
      "\($0) = CASE WHEN excluded.\($0) = '-infinity' THEN s.\($0) ELSE \(Stamps.next("\(unescaped: $0)").text) END"
    }
    let text = Text(columns: columns.joined(), marks: marks.joined(), stamps: stamps.joined(separator: ",\n"))
    texts.withLock { $0[bits] = text }
    return text
  }
}
