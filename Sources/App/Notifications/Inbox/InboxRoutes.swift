import Hummingbird
import Postgres

/// The inbox, its read marks, and the notification preferences.
struct InboxRoutes {
  let dependencies: Dependencies

  private var database: Database { dependencies.database }

  func add(to routes: Routes) {
    routes.get("notifications", use: list)
    routes.post("notifications/read", use: markRead)
    routes.get("notification-preferences", use: preferences)
    routes.put("notification-preferences", use: choose)
  }

  @Sendable private func list(_ request: Request, _ context: Context) async throws -> Response {
    let page = try request.query { $0.page() }
    return try await request.unlessUnchanged(.notifications, of: context.user, in: database) {
      .list(try await InboxItem.list(of: context.user, page: page, in: database))
    }
  }

  @Sendable private func markRead(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let marked = try await request.read { fields -> InboxItem.Marked in
      let ids: [InboxItem.ID]? = fields.optional("ids", .list(of: .id(), atMost: InboxItem.maximumBatch))
      let time = fields.optional("before", .moment)
      if (ids == nil) == (time == nil) {
        for name in ["ids", "before"] { fields.note(name, "exactly one of ids and before must be given") }
      }
      if let time { return .arrived(by: time) }
      return .these(ids ?? [])
    }
    while true {
      let rows = try await database.change(thenReading: InboxItem.unread(of: me, left: marked)) {
        try InboxItem.markRead(marked, by: me, in: $0)
      }
      guard let row = rows.first else { throw AppError.sessionEnded }
      let (unread, left): (Int, Int) = (try row[0], try row[1])
      if left == 0 { return .json(Unread(count: unread)) }
    }
  }

  @Sendable private func preferences(_ request: Request, _ context: Context) async throws -> Response {
    try await request.unlessUnchanged(.notificationPreferences, of: context.user, in: database) {
      let preferences = try await NotificationPreferences.find(of: context.user, in: database)
      return .json(preferences, stamp: preferences.stamp)
    }
  }

  @Sendable private func choose(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let choices = try await request.read { fields -> [Notice.Kind: Bool] in
      // Clients may send back the whole response of the GET.
      fields.allow(
        only: Notice.Kind.optional.map(\.rawValue) + ["timestamp"], "is not a notification type that can be turned off")
      var choices: [Notice.Kind: Bool] = [:]
      for kind in Notice.Kind.optional {
        if case .set(let isOn) = fields.edit(kind.rawValue, .flag) { choices[kind] = isOn }
      }
      return choices
    }
    let chosen = try await dependencies.change(at: .user(me)) {
      try await NotificationPreferences.choose(choices, by: me, in: $0)
    }
    let committed = try await chosen.afterCommit(of: me, in: database)
    return .json(committed, stamp: committed.stamp)
  }
}

private struct Unread: JSONWritable {
  let count: Int

  func write(to json: inout JSONWriter) {
    json.object { $0.member("unread", count) }
  }
}

extension NotificationPreferences: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      for kind in Notice.Kind.optional {
        let isOn = !muted.contains(kind)
        $0.member(name: kind.rawValue) { isOn.write(to: &$0) }
      }
      $0.member("timestamp", stamp.map(Stamp.init))
    }
  }
}
