import Postgres

extension Dependencies {
  /// Runs and commits a verb, which waits for its turn at the keys before it takes a connection.
  ///
  /// - Parameter keys: the users, the session or the event whose rows the verb locks and others may lock too; the user who
  ///   acts comes first. A large set of users is left out: the user who acts stands for it.
  func change<Value: Sendable>(
    at keys: KeyedQueue.Key..., verb body: (Change) async throws -> Value
  ) async throws -> Value {
    try await inTurn(at: keys) { try await database.change(body) }
  }

  /// The same for a verb whose result is then read as the change leaves it, in the round trip of COMMIT.
  ///
  /// - Returns: the rows of `reading`.
  func change(
    at keys: KeyedQueue.Key..., thenReading reading: SQL, _ body: (Change) async throws -> Void
  ) async throws -> Rows {
    try await inTurn(at: keys) { try await database.change(thenReading: reading, body) }
  }

  /// Runs and commits a verb on one event, which waits for its turn before it takes a connection.
  ///
  /// - Parameter body: refuses callers who do not see the event, before and after it.
  /// - Returns: the event as the verb leaves it, for the user who acts.
  /// - Throws: ``AppError/eventNotFound`` for a user who does not see the event, before they wait, or the body's errors.
  func change(
    of event: Event.ID, by user: User.ID, _ body: (Change) async throws -> Void
  ) async throws -> Event.Detail {
    // Strangers who know its id would take places in the line from its guests. Without a line there are none to take,
    // and `body` refuses them.
    if writeQueue.waiting(at: .event(event)) != nil {
      let mayWait: Bool? = try await database.value("SELECT \(Event.isVisible(event, to: user))")
      guard mayWait == true else { throw AppError.eventNotFound }
    }
    return try Event.Detail(
      rows: try await change(
        at: .actor(user), .event(event), thenReading: Event.Detail.query(event, for: user), body))
  }

  private func inTurn<Value: Sendable>(
    at keys: [KeyedQueue.Key], _ body: () async throws -> Value
  ) async throws -> Value {
    guard queuesWrites else { return try await body() }
    if case .user(let actor) = keys.first { return try await writeQueue.turn(at: keys + [.actor(actor)], body) }
    return try await writeQueue.turn(at: keys, body)
  }
}
