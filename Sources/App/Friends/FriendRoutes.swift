import HTTPServer
import Postgres

struct FriendRoutes {
  let dependencies: Dependencies

  private var database: Database { dependencies.database }

  @Sendable func friends(_ request: Request, _ context: Context) async throws -> Response {
    let (page, include) = try request.query { ($0.page(), $0.include(.digests)) }
    let digests = dependencies.digests(if: include)
    return try await request.unlessUnchanged(digests == nil ? .friends : nil, of: context.user, in: database) {
      .list(try await Friend.list(of: context.user, page: page, in: database), digests: digests)
    }
  }

  @Sendable func unfriend(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let other: User.ID = try context.id("userId", else: .userNotFound)
    return try await dependencies.respond(to: context, at: [.user(me), .user(other)]) {
      try await Friend.end(with: other, by: me, in: $0)
      return .noContent
    }
  }

  @Sendable func requests(_ request: Request, _ context: Context) async throws -> Response {
    let (page, named, include) = try request.query {
      ($0.page(), $0.word("direction", of: FriendRequest.Direction.allCases), $0.include(.digests))
    }
    let direction = named ?? .incoming
    let digests = dependencies.digests(if: include)
    let collection = digests == nil ? direction.collection : nil
    return try await request.unlessUnchanged(collection, of: context.user, in: database) {
      .list(try await FriendRequest.list(direction, of: context.user, page: page, in: database), digests: digests)
    }
  }

  @Sendable func request(_ request: Request, _ context: Context) async throws -> Response {
    let id: FriendRequest.ID = try context.id("id", else: .friendRequestNotFound)
    guard let found = try await FriendRequest.find(id, for: context.user, in: database) else {
      throw AppError.friendRequestNotFound
    }
    return .json(found)
  }

  @Sendable func send(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let draft = try await request.read(Body.FriendRequestDraft.init)
    var receiver = draft.receiverId
    if let id = draft.id, let sent = try await FriendRequest.sent(id, by: me, in: database) {
      if context.idempotent == nil { return try await confirmed(sent) }
      receiver = sent.receiver.id
    }
    // With an Idempotency-Key, this response must also be stored.
    if context.idempotent == nil,
      let pending = try await FriendRequest.pending(from: me, to: receiver, in: database)
    {
      return try await confirmed(pending)
    }
    return try await dependencies.respond(to: context, at: [.user(me), .user(receiver)], about: [receiver]) {
      let isLimited = dependencies.throttle.isOn
      return
        switch try await FriendRequest.send(
          NewID(draft.id), from: me, to: receiver, isLimited: isLimited, in: $0)
      {
      case .created(let request): .json(request, status: .created)
      case .alreadyPending(let request), .alreadySent(let request), .accepted(let request): .json(request)
      }
    }
  }

  private func confirmed(_ request: FriendRequest) async throws -> Response {
    try await database.confirm("SELECT FROM friend_requests WHERE id = \(request.id)")
    return .json(request)
  }

  @Sendable func cancel(_ request: Request, _ context: Context) async throws -> Response {
    try await perform(.sent, context) { id, me, receiver, change in
      try await FriendRequest.cancel(id, by: me, to: receiver, in: change)
    }
  }

  @Sendable func accept(_ request: Request, _ context: Context) async throws -> Response {
    try await perform(.incoming, context) { id, me, sender, change in
      try await FriendRequest.accept(id, by: me, from: sender, in: change)
    }
  }

  @Sendable func decline(_ request: Request, _ context: Context) async throws -> Response {
    try await perform(.incoming, context) { id, me, sender, change in
      try await FriendRequest.decline(id, by: me, from: sender, in: change)
    }
  }

  /// Runs a verb on a request, in turn with all other changes of the two users.
  private func perform(
    _ direction: FriendRequest.Direction, _ context: Context,
    _ verb: (FriendRequest.ID, _ me: User.ID, _ other: User.ID, Change) async throws -> FriendRequest
  ) async throws -> Response {
    let me = try context.user
    let id: FriendRequest.ID = try context.id("id", else: .friendRequestNotFound)
    let other = try await FriendRequest.other(in: id, direction, of: me, in: database)
    return try await dependencies.respond(to: context, at: [.user(me), .user(other)], about: [other]) {
      .json(try await verb(id, me, other, $0))
    }
  }
}

extension Friend: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.friend(user: person, since: since)
  }
}

extension FriendRequest: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.friendRequest(
      id: id, sender: sender, receiver: receiver, status: status, filtered: isFiltered, createdAt: createdAt)
  }
}
