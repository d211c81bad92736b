import Hummingbird
import Postgres

/// Changes that end with a response. If the request has an `Idempotency-Key`, the response is stored in the transaction
/// of the change, and a repeated request gets it, until a block comes between the user and someone whom it is about:
/// `others`, and the users and events that the keys name.
extension Dependencies {
  func respond(
    to context: Context, at keys: KeyedQueue.Key..., about others: [User.ID] = [],
    verb: (Change) async throws -> Response
  ) async throws -> Response {
    try await respond(
      to: context, at: keys, about: others, canReadAgain: false, again: { throw AppError.idempotencyKeyReused },
      verb: verb)
  }

  /// The same for a verb after which `again` reads the response from the database.
  func respond(
    to context: Context, at keys: KeyedQueue.Key..., again: () async throws -> Response,
    verb: (Change) async throws -> Response
  ) async throws -> Response {
    try await respond(to: context, at: keys, about: [], canReadAgain: true, again: again, verb: verb)
  }

  /// - Parameters:
  ///   - canReadAgain: a change without an effect stores no response.
  ///   - again: reads the response to a repeated request.
  private func respond(
    to context: Context, at keys: [KeyedQueue.Key], about others: [User.ID], canReadAgain: Bool,
    again: () async throws -> Response,
    verb: (Change) async throws -> Response
  ) async throws -> Response {
    guard let request = context.idempotent else { return try await change(at: keys, verb: verb) }
    let user = try context.user
    if !request.hadNoEffect {
      var subjects = IdempotentRequest.Subjects(users: others)
      for key in keys {
        switch key {
        case .user(let other): subjects.users.append(other)
        case .event(let event): subjects.events.append(event)
        case .actor, .session: break
        }
      }
      let response = try await change(at: keys) { [subjects] change in
        try await request.once(by: user, about: subjects, in: change, canReadAgain: canReadAgain) {
          try await verb(change)
        }
      }
      if let response { return response }
    }
    var current = try await again()
    current.headers[.idempotentReplayed] = "true"
    return current
  }

  /// Reads what the response needs after the verb. Without an `Idempotency-Key`, it is read in the round trip of
  /// COMMIT.
  func respond(
    to context: Context, at keys: KeyedQueue.Key..., thenReading reading: SQL, verb: (Change) async throws -> Void,
    response: (Rows) throws -> Response
  ) async throws -> Response {
    try await respond(to: context, at: keys, about: [], thenReading: reading, verb: verb, response: response)
  }

  private func respond(
    to context: Context, at keys: [KeyedQueue.Key], about others: [User.ID], thenReading reading: SQL,
    verb: (Change) async throws -> Void, response: (Rows) throws -> Response
  ) async throws -> Response {
    guard context.idempotent != nil else { return try response(try await change(at: keys, thenReading: reading, verb)) }
    return try await respond(to: context, at: keys, about: others, canReadAgain: true) {
      try response(try await database.rows(reading))
    } verb: { change in
      try await verb(change)
      return try response(try await change.rows(reading))
    }
  }

  /// Responds with an object that is a collection. With an `Idempotency-Key`, it has no stamp: the stamp is made after
  /// the response is stored.
  ///
  /// - Parameters:
  ///   - reading: reads the object.
  ///   - committed: reads the object again after the commit.
  func respond<Value: Stamped>(
    to context: Context, at keys: KeyedQueue.Key..., reading: () async throws -> Value,
    verb: (Change) async throws -> Value, committed: (Value) async throws -> Value, response: (Value) -> Response
  ) async throws -> Response {
    guard context.idempotent != nil else {
      return response(try await committed(try await change(at: keys, verb: verb)))
    }
    func stampless(_ value: Value) -> Response {
      var value = value
      value.stamp = nil
      return response(value)
    }
    return try await respond(to: context, at: keys, about: [], canReadAgain: true) {
      stampless(try await reading())
    } verb: {
      stampless(try await verb($0))
    }
  }

  /// Responds with an event after a verb on it, as the user sees it.
  ///
  /// - Parameter verb: must refuse users who do not see the event, before or after the change.
  func respond(
    to context: Context, of event: Event.ID, about others: [User.ID] = [], verb: (Change) async throws -> Void
  ) async throws -> Response {
    let user = try context.user
    try await checkMayWait(at: event, context)
    return try await respond(
      to: context, at: [.actor(user), .event(event)], about: others, thenReading: Event.detail(event, for: user),
      verb: verb
    ) { .event(try Event(detail: $0)) }
  }
}
