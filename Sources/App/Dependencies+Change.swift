import Postgres

extension Dependencies {
  /// Runs and commits a verb. It waits for its turn at the keys before it takes a connection.
  ///
  /// - Parameter keys: the users, the session or the event whose rows the verb locks and others may lock too. The
  ///   acting user comes first. A large set of users is left out: the acting user stands for it.
  func change<Value: Sendable>(
    at keys: KeyedQueue.Key..., verb body: (Change) async throws -> Value
  ) async throws -> Value {
    try await inTurn(at: keys) { try await database.change(body) }
  }

  /// The same for a verb after which `reading` is read, in the round trip of COMMIT.
  ///
  /// - Returns: the rows of `reading`.
  func change(
    at keys: KeyedQueue.Key..., thenReading reading: SQL, _ body: (Change) async throws -> Void
  ) async throws -> Rows {
    try await inTurn(at: keys) { try await database.change(thenReading: reading, body) }
  }

  /// Runs and commits a verb on one event. It waits for its turn before it takes a connection.
  ///
  /// - Parameter body: must refuse users who do not see the event, before or after the change.
  /// - Returns: the event after the verb, as the acting user sees it.
  /// - Throws: ``AppError/eventNotFound``, without waiting, for a user who does not see the event, or the body's
  ///   errors.
  func change(
    of event: Event.ID, by user: User.ID, _ body: (Change) async throws -> Void
  ) async throws -> Event.Detail {
    // Strangers who know the event's id would take places in the line from its guests. Without a line there are no
    // places to take, and `body` refuses strangers.
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
