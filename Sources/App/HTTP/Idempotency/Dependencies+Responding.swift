import Hummingbird
import Postgres

/// Changes that end with a response. If the request has an `Idempotency-Key`, the response is stored in the transaction
/// of the change, and a repeated request gets it, until a block comes between the caller and someone whom it is about.
extension Dependencies {
  /// - Parameter others: the other users whom the request is about, if the response shows them. A block between one of
  ///   them and the caller ends the replays.
  func respond(
    to context: Context, at keys: KeyedQueue.Key..., about others: [User.ID] = [],
    verb: (Change) async throws -> Response
  ) async throws -> Response {
    try await respond(to: context, at: keys, canReadAgain: false, again: { throw AppError.idempotencyKeyReused }) {
      .init(response: try await verb($0), about: others)
    }
  }

  /// The same for a verb after which `again` reads the response from the database.
  func respond(
    to context: Context, at keys: KeyedQueue.Key..., again: () async throws -> Response,
    verb: (Change) async throws -> Response
  ) async throws -> Response {
    try await respond(to: context, at: keys, canReadAgain: true, again: again) {
      .init(response: try await verb($0))
    }
  }

  /// - Parameters:
  ///   - canReadAgain: a change without an effect stores no response.
  ///   - again: reads the response to a repeated request.
  private func respond(
    to context: Context, at keys: [KeyedQueue.Key], canReadAgain: Bool, again: () async throws -> Response,
    verb: (Change) async throws -> IdempotentRequest.Outcome
  ) async throws -> Response {
    guard let request = context.idempotent else { return try await change(at: keys) { try await verb($0).response } }
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

  /// Reads an event for the response after the verb. Without an `Idempotency-Key`, it is read in the round trip of
  /// COMMIT.
  ///
  /// - Parameter others: as above, from the event as the caller sees it. Others whom the event shows need not be named.
  func respond(
    to context: Context, at keys: KeyedQueue.Key..., thenReading event: Event.ID,
    about others: (Event) -> [User.ID] = { _ in [] }, verb: (Change) async throws -> Void,
    response: (Event) -> Response
  ) async throws -> Response {
    try await respond(to: context, at: keys, thenReading: event, about: others, verb: verb, response: response)
  }

  private func respond(
    to context: Context, at keys: [KeyedQueue.Key], thenReading event: Event.ID, about others: (Event) -> [User.ID],
    verb: (Change) async throws -> Void, response: (Event) -> Response
  ) async throws -> Response {
    let reading = Event.detail(event, for: try context.user)
    guard context.idempotent != nil else {
      return response(try Event(detail: try await change(at: keys, thenReading: reading, verb)))
    }
    return try await respond(to: context, at: keys, canReadAgain: true) {
      response(try Event(detail: try await database.rows(reading)))
    } verb: { change in
      try await verb(change)
      let event = try Event(detail: try await change.rows(reading))
      return .init(response: response(event), about: others(event), event: event)
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
    return try await respond(to: context, at: keys, canReadAgain: true) {
      stampless(try await reading())
    } verb: {
      .init(response: stampless(try await verb($0)))
    }
  }

  /// Responds with an event after a verb on it, as the user sees it.
  ///
  /// - Parameters:
  ///   - others: the other users whom the request is about.
  ///   - verb: must refuse users who do not see the event, before or after the change.
  func respond(
    to context: Context, of event: Event.ID, about others: [User.ID] = [], verb: (Change) async throws -> Void
  ) async throws -> Response {
    let user = try context.user
    try await checkMayWait(at: event, context)
    return try await respond(
      to: context, at: [.actor(user), .event(event)], thenReading: event, about: { _ in others }, verb: verb
    ) { .event($0) }
  }
}
