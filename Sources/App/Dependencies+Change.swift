import HTTPServer
import Postgres

/// Changes in turn. A write waits for its turn at the rows that others also change, before it takes a connection.
extension Dependencies {
  /// Runs and commits a verb.
  ///
  /// - Parameter keys: the users, the session or the event whose rows the verb locks and others may lock too. The
  ///   acting user comes first. A large set of users is left out: the acting user stands for it.
  func change<Value: Sendable>(
    at keys: [KeyedQueue.Key], verb: (Change) async throws -> Value
  ) async throws -> Value {
    try await writeQueue.turn(at: turns(at: keys)) { try await database.change(verb) }
  }

  /// The same for a verb after which `reading` is read, in the round trip of COMMIT.
  ///
  /// - Returns: the rows of `reading`.
  func change(
    at keys: [KeyedQueue.Key], thenReading reading: SQL, _ verb: (Change) async throws -> Void
  ) async throws -> Rows {
    try await writeQueue.turn(at: turns(at: keys)) { try await database.change(thenReading: reading, verb) }
  }

  private func turns(at keys: [KeyedQueue.Key]) -> [KeyedQueue.Key] {
    guard queuesWrites else { return [] }
    if case .user(let actor) = keys.first { return keys + [.actor(actor)] }
    return keys
  }

  /// Before a verb on an event waits for its turn: refuses users who do not see the event. Otherwise strangers who know
  /// its id would take places in the line from its guests. Without a line there are no places to take, and the verb
  /// refuses strangers. A repeated request gets its first response, even if that change ended the caller's access.
  ///
  /// - Throws: ``AppError/eventNotFound``
  func checkMayWait(at event: Event.ID, _ context: Context) async throws {
    guard writeQueue.waiting(at: .event(event)) != nil else { return }
    let user = try context.user
    let mayWait: Bool? = try await database.value("SELECT \(Event.isVisible(event, to: user))")
    if mayWait == true { return }
    guard try await context.idempotent?.stored(in: database) != nil else { throw AppError.eventNotFound }
  }
}

/// Changes that end with a response. If the request has an `Idempotency-Key`, the response is stored in the transaction
/// of the change, and a repeated request gets it, until a block comes between the caller and someone whom it is about.
extension Dependencies {
  /// - Parameters:
  ///   - others: the other users whom the request is about, if the response shows them. A block between one of them and
  ///     the caller ends the replays.
  ///   - again: reads the response from the database, if the first request has changed nothing.
  func respond(
    to context: Context, at keys: [KeyedQueue.Key], about others: [User.ID] = [],
    again: (() async throws -> Response)? = nil, verb: (Change) async throws -> Response
  ) async throws -> Response {
    guard let request = context.idempotent else { return try await change(at: keys, verb: verb) }
    return try await once(request, context, at: keys, canReadAgain: again != nil) {
      guard let again else { throw AppError.idempotencyKeyReused }
      return try await again()
    } verb: {
      .init(response: try await verb($0), about: others)
    }
  }

  /// Responds with an event after a verb, as the user sees it. Without an `Idempotency-Key`, it is read in the round
  /// trip of COMMIT.
  ///
  /// - Parameters:
  ///   - keys: nil for a verb on the event, which must refuse users who do not see it, before or after the change. With
  ///     keys, the caller need not see the event before: nothing keeps strangers out of its line.
  ///   - others: as above. Others whom the event shows need not be named.
  ///   - isAboutHosts: whether the request is also about the event's hosts, as the caller sees them afterwards.
  func respond(
    to context: Context, of event: Event.ID, at keys: [KeyedQueue.Key]? = nil,
    about others: [User.ID] = [], isAboutHosts: Bool = false, verb: (Change) async throws -> Void,
    response: (Event) -> Response = { .event($0) }
  ) async throws -> Response {
    let user = try context.user
    if keys == nil { try await checkMayWait(at: event, context) }
    let keys = keys ?? [.actor(user), .event(event)]
    let reading = Event.detail(event, for: user)
    guard let request = context.idempotent else {
      return response(try Event(detail: try await change(at: keys, thenReading: reading, verb)))
    }
    return try await once(request, context, at: keys, canReadAgain: true) {
      response(try Event(detail: try await database.rows(reading)))
    } verb: { change in
      try await verb(change)
      let event = try Event(detail: try await change.rows(reading))
      let about = isAboutHosts ? others + event.hosts.map(\.id) : others
      return .init(response: response(event), about: about, event: event)
    }
  }

  /// Responds with an object that is a collection. With an `Idempotency-Key`, it has no stamp: the stamp is made after
  /// the response is stored.
  ///
  /// - Parameters:
  ///   - reading: reads the object.
  ///   - committed: reads the object again after the commit.
  func respond<Value: Stamped>(
    to context: Context, at keys: [KeyedQueue.Key], reading: () async throws -> Value,
    verb: (Change) async throws -> Value, committed: (Value) async throws -> Value, response: (Value) -> Response
  ) async throws -> Response {
    guard let request = context.idempotent else {
      return response(try await committed(try await change(at: keys, verb: verb)))
    }
    func stampless(_ value: Value) -> Response {
      var value = value
      value.stamp = nil
      return response(value)
    }
    return try await once(request, context, at: keys, canReadAgain: true) {
      stampless(try await reading())
    } verb: {
      .init(response: stampless(try await verb($0)))
    }
  }

  /// The response to a repeated request whose first response is not stored: the event as it is. For requests that accept
  /// something which may be gone by now, such as a proposal, or a link that was revoked since.
  ///
  /// - Returns: nil for the first request.
  func eventAgain(for context: Context) async throws -> Response? {
    guard let request = context.idempotent, request.hadNoEffect, let event = request.event else { return nil }
    var response = Response.event(try await Event.find(event, for: try context.user, in: database))
    response.headers[.idempotentReplayed] = "true"
    return response
  }

  /// Runs the verb of a request with an `Idempotency-Key`, unless an earlier request has run it.
  ///
  /// - Parameters:
  ///   - canReadAgain: a change without an effect stores no response.
  ///   - again: reads the response to a repeated request.
  private func once(
    _ request: IdempotentRequest, _ context: Context, at keys: [KeyedQueue.Key], canReadAgain: Bool,
    again: () async throws -> Response, verb: (Change) async throws -> IdempotentRequest.Outcome
  ) async throws -> Response {
    let user = try context.user
    if !request.hadNoEffect {
      let response = try await change(at: keys) { change in
        try await request.once(by: user, in: change, canReadAgain: canReadAgain) { try await verb(change) }
      }
      if let response { return response }
    }
    var current = try await again()
    current.headers[.idempotentReplayed] = "true"
    return current
  }
}

/// A value with the stamp of its collection, which only a read after the commit has.
protocol Stamped: Sendable {
  var stamp: Timestamp? { get set }
}
