import Foundation

extension PreviewWorld {
  mutating func inbox(_ request: PreviewRequest) throws -> TransportResponse {
    switch (request.method, request.words.joined(separator: "/")) {
    case ("GET", "notifications") where request.query["unread"] == "true":
      return try list((lists.notifications ?? []).filter { $0.readAt == nil }, request, unread: unread)
    case ("GET", "notifications"): return try list(.notifications, request)
    case ("POST", "notifications/read"):
      try perform(.markRead(marked(try request.read())))
      return try .json(["unread": unread])
    case ("GET", "notification-preferences"): return try .json(lists.notificationPreferences)
    case ("PUT", "notification-preferences"):
      try perform(.setPreferences(try request.read()))
      settle()
      return try .json(lists.notificationPreferences)
    default: throw Problem.missing(.routeNotFound)
    }
  }

  var unread: Int { (lists.notifications ?? []).count { $0.readAt == nil } }

  /// The notifications that a request marks: those with some ids, or all that had arrived by a time.
  private func marked(_ body: JSONValue) -> [InboxItem.ID] {
    if case .array(let ids)? = body["ids"] { return ids.compactMap { $0.string.flatMap(InboxItem.ID.init) } }
    let time = body["before"]?.string.flatMap(WireTime.date) ?? .distantFuture
    return (lists.notifications ?? []).filter { $0.createdAt <= time }.map(\.id)
  }
}
