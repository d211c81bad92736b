import Postgres

/// Something that a user was told, as their inbox holds it.
struct InboxItem: Sendable {
  let id: Identifier<InboxItem>
  let payload: JSONDocument
  let createdAt: Timestamp
  let readAt: Timestamp?

  /// What `init(row:)` reads of a row of `notifications` that goes by the name of `n`.
  static let columns: SQL = "n.id, n.payload, n.filed_at, n.read_at"

  init(row: Row) throws {
    id = try row["id"]
    payload = try row["payload"]
    createdAt = try row["filed_at"]
    readAt = try row["read_at"]
  }
}

extension InboxItem: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("id", id)
      $0.member("payload") { $0.raw(payload.text) }
      $0.member("createdAt", createdAt)
      $0.member("readAt", readAt)
    }
  }
}
