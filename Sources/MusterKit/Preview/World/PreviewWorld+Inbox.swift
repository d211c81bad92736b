import Foundation

extension PreviewWorld {
  func listNotifications(_ request: PreviewRequest) throws -> TransportResponse {
    guard request.query["unread"] == "true" else { return try list(.notifications, request) }
    return try list((lists.notifications ?? []).filter { $0.readAt == nil }, request, unread: unread)
  }

  mutating func markRead(_ request: PreviewRequest) throws -> TransportResponse {
    try perform(.markRead(marked(try request.read())))
    return try .json(Unread(unread: unread))
  }

  mutating func setPreferences(_ request: PreviewRequest) throws -> TransportResponse {
    try perform(.setPreferences(try request.read()))
    settle()
    return try .json(lists.notificationPreferences)
  }

  var unread: Int { (lists.notifications ?? []).count { $0.readAt == nil } }

  /// The notifications that a request marks: those with some ids, or all that had arrived by a time.
  private func marked(_ body: JSONValue) -> [InboxItem.ID] {
    if case .array(let ids)? = body["ids"] { return ids.compactMap { $0.string.flatMap(InboxItem.ID.init) } }
    let time = body["before"]?.string.flatMap(WireTime.date) ?? .distantFuture
    return (lists.notifications ?? []).filter { $0.createdAt <= time }.map(\.id)
  }
}
