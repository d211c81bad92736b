import Postgres

extension Dependencies {
  /// Runs and commits a verb. It waits for its turn at the keys before it takes a connection.
  ///
  /// - Parameter keys: the users, the session or the event whose rows the verb locks and others may lock too. The
  ///   acting user comes first. A large set of users is left out: the acting user stands for it.
  func change<Value: Sendable>(
    at keys: KeyedQueue.Key..., verb body: (Change) async throws -> Value
  ) async throws -> Value {
    try await change(at: keys, verb: body)
  }

  /// The same with keys that are known only at run time, or none.
  func change<Value: Sendable>(
    at keys: [KeyedQueue.Key], verb body: (Change) async throws -> Value
  ) async throws -> Value {
    try await inTurn(at: keys) { try await database.change(body) }
  }

  /// The same for a verb after which `reading` is read, in the round trip of COMMIT.
  ///
  /// - Returns: the rows of `reading`.
  func change(
    at keys: [KeyedQueue.Key], thenReading reading: SQL, _ body: (Change) async throws -> Void
  ) async throws -> Rows {
    try await inTurn(at: keys) { try await database.change(thenReading: reading, body) }
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

  private func inTurn<Value: Sendable>(
    at keys: [KeyedQueue.Key], _ body: () async throws -> Value
  ) async throws -> Value {
    guard queuesWrites else { return try await body() }
    if case .user(let actor) = keys.first { return try await writeQueue.turn(at: keys + [.actor(actor)], body) }
    return try await writeQueue.turn(at: keys, body)
  }
}
