/// Reads of one kind, each for a key of its own, of which many are asked for at about the same time. As long as they are
/// few, each is a statement of its own; those that come while others are under way are gathered, and leave as one statement
/// when there is an answer. Nobody waits for company, and the busier the server, the fewer statements it gets for as many
/// reads.
///
///     let titles = DataLoader(in: database) { (ids: [UUID], database) in
///       let rows = try await database.rows("SELECT id, title FROM events WHERE id = ANY(\(ids))")
///       return try Dictionary(uniqueKeysWithValues: rows.map { (try $0[0], try $0[1]) }) as [UUID: String]
///     }
///     let title = try await titles.value(for: id)
///
/// No read is added to a statement that has left: whoever asks sees all that was committed before.
public final class DataLoader<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private typealias Asked = (key: Key, reply: Reply<Value?>)

  private struct State {
    /// Keys, whether they left alone or together.
    var underWay = 0
    var lastSent = ContinuousClock.now
    var asked: [Asked] = []

    /// Nobody waits while fewer are under way: a few as long as callers are few, and then one, so that more are gathered.
    var limit = few

    mutating func sendOne(at now: ContinuousClock.Instant) {
      if underWay == 0, now - lastSent > patience { limit = few }
      underWay += 1
      lastSent = now
    }

    mutating func sendAsked(at now: ContinuousClock.Instant) -> [Asked] {
      underWay += asked.count
      lastSent = now
      if asked.count > few { limit = 1 } else if asked.count == 1 { limit = few }
      defer { asked = [] }
      return asked
    }
  }

  private enum Turn {
    case readsAlone
    case waits(Reply<Value?>)
    case leaves(Reply<Value?>, with: [Asked])
  }

  private static var few: Int { 4 }
  /// Whoever comes when the last statement is as old as this waits for no answer, and takes along those who do.
  private static var patience: Duration { .milliseconds(20) }

  private let database: Database
  private let read: @Sendable ([Key], Database) async throws -> [Key: Value]
  private let state = Lock(State())

  /// - Parameter read: reads the values of these keys, of which some may be equal, in one statement. Those who asked share
  ///   its failure: it must be one that no key makes fail, or slow. A key without a value is left out.
  public init(
    in database: Database,
    _ read: @escaping @Sendable (_ keys: [Key], _ database: Database) async throws -> [Key: Value]
  ) {
    self.database = database
    self.read = read
  }

  /// The value of a key, or nil if it has none. Takes at most twice as long as a read may take, and cancelling the task
  /// ends its wait at once.
  ///
  /// - Throws: what reading threw; ``PostgresError`` of kind `overloaded` if ``Database/Configuration/maximumWaiting``
  ///   callers are gathered already.
  public func value(for key: Key) async throws -> Value? {
    switch try turn(of: key) {
    case .readsAlone:
      defer { sendNext(after: 1) }
      return try await read([key], database)[key]
    case .waits(let reply):
      return try await reply.value()
    case .leaves(let reply, let asked):
      answer(asked)
      return try await reply.value()
    }
  }

  private func turn(of key: Key) throws -> Turn {
    let (now, maximum) = (ContinuousClock.now, database.configuration.maximumWaiting)
    return try state.withLock { state in
      let isOverdue = now - state.lastSent > Self.patience && state.underWay < maximum
      if state.asked.isEmpty, state.underWay < state.limit || isOverdue {
        state.sendOne(at: now)
        return .readsAlone
      }
      // Those who gave up do not count.
      if state.asked.count >= maximum { state.asked.removeAll { $0.reply.isDone } }
      guard isOverdue || state.asked.count < maximum else {
        throw PostgresError(.overloaded, "too many reads are gathered")
      }
      let reply = Reply<Value?>()
      state.asked.append((key, reply))
      return isOverdue ? .leaves(reply, with: state.sendAsked(at: now)) : .waits(reply)
    }
  }

  private func answer(_ asked: [Asked]) {
    Task.detached { [self] in
      do {
        let values = try await read(asked.map(\.key), database)
        sendNext(after: asked.count)
        for (key, reply) in asked { reply.fulfil(.success(values[key])) }
      } catch {
        sendNext(after: asked.count)
        for (_, reply) in asked { reply.fulfil(.failure(error)) }
      }
    }
  }

  private func sendNext(after answered: Int) {
    let asked = state.withLock { state -> [Asked] in
      state.underWay -= answered
      return state.asked.isEmpty || state.underWay >= state.limit ? [] : state.sendAsked(at: .now)
    }
    if !asked.isEmpty { answer(asked) }
  }
}
