import HTTPServer

struct HostRoutes {
  let dependencies: Dependencies

  @Sendable func offerHost(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let id: Event.ID = try context.id("id", else: .eventNotFound)
    let user: User.ID = try context.id("userId", else: .userNotFound)
    return try await dependencies.respond(to: context, of: id, about: [user]) {
      try await Event.offerHost(user, to: id, by: me, in: $0)
    }
  }

  /// Responds without the event, because a co-host who leaves can no longer read it.
  @Sendable func removeHost(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let id: Event.ID = try context.id("id", else: .eventNotFound)
    let user: User.ID = try context.id("userId", else: .userNotFound)
    try await dependencies.checkMayWait(at: id, context)
    return try await dependencies.respond(to: context, at: [.actor(me), .event(id)], about: [user]) {
      try await Event.removeHost(user, from: id, by: me, in: $0)
      return .noContent
    }
  }

  @Sendable func offers(_ request: Request, _ context: Context) async throws -> Response {
    let id: Event.ID = try context.id("id", else: .eventNotFound)
    return .list(List(onlyPage: try await HostOffer.list(of: id, for: try context.user, in: dependencies.database)))
  }

  @Sendable func setAnswer(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let id: Event.ID = try context.id("id", else: .eventNotFound)
    let guest: Guest.ID = try context.id("userId", else: .guestNotFound)
    let body = try await request.read(Body.AnswerSetting.init)
    let basis = Party.Basis(status: body.ifStatus, plusOnes: body.ifPlusOnes)
    return try await dependencies.respond(to: context, of: id, about: [guest.user]) {
      try await Guest.setAnswer(body.status, basedOn: basis, of: guest, to: id, by: me, in: $0)
    }
  }

  @Sendable func remind(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let id: Event.ID = try context.id("id", else: .eventNotFound)
    try await dependencies.checkMayWait(at: id, context)
    return try await dependencies.respond(to: context, at: [.actor(me), .event(id)]) {
      .json(Reminded(guests: try await Invitation.remind(of: id, by: me, in: $0)))
    }
  }

  @Sendable func duplicate(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let id: Event.ID = try context.id("id", else: .eventNotFound)
    let body = try await request.read(Body.EventCopy.init)
    let times = Event.CopyTimes(startTime: body.startTime, endTime: body.endTime)
    let copy = NewID(body.id)
    var isNew = false
    // A repeated request needs no place in the line, and no rights at the original.
    var isAgain = false
    if copy.isGiven { isAgain = try await Event.isCreated(copy.value, by: me, in: dependencies.database) }
    if !isAgain { try await dependencies.checkMayWait(at: id, context) }
    return try await dependencies.respond(
      to: context, of: copy.value, at: isAgain ? [.user(me)] : [.user(me), .event(id)]
    ) {
      isNew = try await Event.duplicate(
        id, as: copy, at: times, in: dependencies.zones, invites: body.invite, by: me, in: $0)
    } response: {
      .created($0, isNew: isNew)
    }
  }
}

/// How many guests were reminded to answer.
private struct Reminded: JSONWritable {
  let guests: Int

  func write(to json: inout JSONWriter) {
    json.reminded(reminded: guests)
  }
}
