import HTTPServer
import Postgres

/// The inbox, its read marks, and the notification preferences.
struct InboxRoutes {
  let dependencies: Dependencies

  private var database: Database { dependencies.database }

  private enum Unread: String, CaseIterable {
    case only = "true"
  }

  @Sendable func list(_ request: Request, _ context: Context) async throws -> Response {
    let (page, unread, include) = try request.query { fields -> (PageRequest, Unread?, ListInclude?) in
      let (unread, include) = (fields.word("unread", of: Unread.allCases), fields.include(.digests))
      fields.refuseDigests(include, if: unread != nil)
      return (fields.page(), unread, include)
    }
    let digests = dependencies.digests(if: include)
    let collection = unread == nil && digests == nil ? Collection.notifications : nil
    return try await request.unlessUnchanged(collection, of: context.user, in: database) {
      let list = try await InboxItem.list(of: context.user, onlyUnread: unread != nil, page: page, in: database)
      return .list(list, digests: digests, more: { $0.member("unread", list.count) })
    }
  }

  @Sendable func markRead(_ request: Request, _ context: Context) async throws -> Response {
    let (me, session) = (try context.user, try context.session)
    let marked = try await request.read { fields -> InboxItem.Marked in
      let body = Body.ReadMark(&fields)
      let all = body.all == true
      let given = [body.ids != nil, body.before != nil, all].count { $0 }
      if given != 1 {
        for name in ["ids", "before", "all"] {
          fields.note(
            name, given == 0 ? .required : .notAllowed, "exactly one of ids, before and all must be given")
        }
      }
      if all { return .all }
      if let time = body.before { return .arrived(by: time) }
      return .these(body.ids ?? [])
    }
    let reading = InboxItem.unread(of: me, besides: marked)
    if context.idempotent != nil {
      // All batches but the last, whose response is stored.
      while let row = try await database.first(reading), try row[1] > InboxItem.maximumMarked {
        try await dependencies.change(at: [.user(me)]) { try InboxItem.markRead(marked, by: me, on: session, in: $0) }
      }
      return try await dependencies.respond(to: context, at: [.user(me)]) { change in
        // Read first: after marking, the lock on the stamps would be held during this read.
        guard let row = try await change.first(reading) else { throw AppError.sessionEnded }
        try InboxItem.markRead(marked, by: me, on: session, in: change)
        return .json(UnreadCount(count: try row[0]))
      }
    }
    while true {
      let rows = try await dependencies.change(at: [.user(me)], thenReading: reading) {
        try InboxItem.markRead(marked, by: me, on: session, in: $0)
      }
      guard let row = rows.first else { throw AppError.sessionEnded }
      if try row[1] == 0 { return .json(UnreadCount(count: try row[0])) }
    }
  }

  @Sendable func preferences(_ request: Request, _ context: Context) async throws -> Response {
    try await request.unlessUnchanged(.notificationPreferences, of: context.user, in: database) {
      let preferences = try await NotificationPreferences.find(of: context.user, in: database)
      return .json(preferences, stamp: preferences.stamp)
    }
  }

  @Sendable func choose(_ request: Request, _ context: Context) async throws -> Response {
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
    let tags = request.ifMatch()
    return try await dependencies.respond(to: context, at: [.user(me)]) {
      try await NotificationPreferences.find(of: me, in: database)
    } verb: {
      try await NotificationPreferences.choose(choices, by: me, ifStampIn: tags, in: $0)
    } committed: {
      try await $0.afterCommit(of: me, in: database)
    } response: {
      .json($0, stamp: $0.stamp)
    }
  }
}

private struct UnreadCount: JSONWritable {
  let count: Int

  func write(to json: inout JSONWriter) {
    json.unread(unread: count)
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
