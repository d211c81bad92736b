/// Reads of one kind, each for a key of its own, of which many are asked for at about the same time. A few are under way
/// at once; those that come meanwhile are gathered, and leave as one statement when the next answer is there. Nobody
/// waits for company, and the busier the server, the fewer statements it gets for as many reads.
///
///     let titles = GatheredReads(in: database) { (ids: [UUID], database) in
///       let rows = try await database.rows("SELECT id, title FROM events WHERE id = ANY(\(ids))")
///       return try Dictionary(uniqueKeysWithValues: rows.map { (try $0[0], try $0[1]) }) as [UUID: String]
///     }
///     let title = try await titles.value(for: id)
///
/// No read is added to a statement that has left: whoever asks sees all that was committed before.
public final class GatheredReads<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private typealias Asked = (key: Key, reply: Reply<Value?>)

  private struct State {
    var underWay = 0
    var asked: [Asked] = []
  }

  private let database: Database
  private let limit: Int
  private let read: @Sendable ([Key], Database) async throws -> [Key: Value]
  private let state = Lock(State())

  /// - Parameters:
  ///   - limit: statements under way at once.
  ///   - read: reads the values of these keys, of which some may be equal, in one statement. Those who asked share its
  ///     failure: it must be one that no key makes fail, or slow. A key without a value is left out.
  public init(
    in database: Database, atOnce limit: Int = 2,
    _ read: @escaping @Sendable (_ keys: [Key], _ database: Database) async throws -> [Key: Value]
  ) {
    self.database = database
    self.limit = limit
    self.read = read
  }

  /// The value of a key, or nil if it has none. Takes at most twice as long as a read may take, and cancelling the task
  /// ends its wait at once.
  ///
  /// - Throws: what reading threw; ``PostgresError`` of kind `overloaded` if ``Database/Configuration/maximumWaiting``
  ///   callers wait already.
  public func value(for key: Key) async throws -> Value? {
    let reply = try state.withLock { state -> Reply<Value?>? in
      if state.underWay < limit {
        state.underWay += 1
        return nil
      }
      guard state.asked.count < database.configuration.maximumWaiting else {
        throw PostgresError(.overloaded, "too many reads are gathered")
      }
      let reply = Reply<Value?>()
      state.asked.append((key, reply))
      return reply
    }
    if let reply { return try await reply.value() }
    defer {
      if let asked = takeAsked() { Task.detached { await self.answer(asked) } }
    }
    return try await read([key], database)[key]
  }

  /// What has been gathered, for whose statement has just been answered to send. If nothing has, one less is under way.
  private func takeAsked() -> [Asked]? {
    state.withLock { state in
      guard !state.asked.isEmpty else {
        state.underWay -= 1
        return nil
      }
      defer { state.asked = [] }
      return state.asked
    }
  }

  private func answer(_ first: [Asked]) async {
    var next: [Asked]? = first
    while let asked = next {
      do {
        let values = try await read(asked.map(\.key), database)
        for (key, reply) in asked { reply.fulfil(.success(values[key])) }
      } catch {
        for (_, reply) in asked { reply.fulfil(.failure(error)) }
      }
      next = takeAsked()
    }
  }
}
