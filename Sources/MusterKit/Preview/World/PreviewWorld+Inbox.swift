import Foundation

extension PreviewWorld {
  mutating func inbox(_ request: PreviewRequest, _ words: [String]) throws -> TransportResponse {
    switch (request.method, words.joined(separator: "/")) {
    case ("GET", "notifications") where request.query["unread"] == "true":
      return try list(notifications.filter { $0.readAt == nil }, request, unread: unread)
    case ("GET", "notifications"): return try list(.notifications, request)
    case ("POST", "notifications/read"):
      markRead(try request.read())
      return try .json(["unread": unread])
    case ("GET", "notification-preferences"): return try .json(preferences)
    case ("PUT", "notification-preferences"):
      let choices: NotificationPreferences = try request.read()
      preferences.choices.merge(choices.choices) { $1 }
      touch(.notificationPreferences)
      return try .json(preferences)
    default: throw Problem.missing(.routeNotFound)
    }
  }

  private var unread: Int { notifications.count { $0.readAt == nil } }

  private mutating func markRead(_ marked: JSONValue) {
    var ids: Set<UUID>?
    if case .array(let listed)? = marked["ids"] {
      ids = Set(listed.compactMap { $0.string.flatMap(UUID.init(uuidString:)) })
    }
    let time = marked["before"]?.string.flatMap(WireTime.date) ?? .distantFuture
    let now = now
    let new = notifications.map { item in
      guard item.readAt == nil, ids?.contains(item.id) ?? true, item.createdAt <= time else { return item }
      var item = item
      item.readAt = now
      return item
    }
    guard new != notifications else { return }
    notifications = new
    touch(.notifications)
  }
}
