/// Combines concurrent reads by key into fewer statements. While few reads are in flight, each is sent immediately as
/// its own statement. Further reads wait in a batch, which is sent as one statement when a result arrives. No read
/// waits for a batch to fill up, and the busier the server, the fewer statements it gets for the same number of reads.
///
///     let titles = DataLoader(in: database) { (ids: [UUID], database) in
///       let rows = try await database.rows("SELECT id, title FROM events WHERE id = ANY(\(ids))")
///       return try Dictionary(uniqueKeysWithValues: rows.map { (try $0[0], try $0[1]) }) as [UUID: String]
///     }
///     let title = try await titles.value(for: id)
///
/// A read never joins a statement that was already sent, so the caller sees everything that was committed before its
/// call. The closure runs on ``Database/executor``.
///
/// Most of it is inlinable: otherwise each read would look up its generic types at run time.
public final class DataLoader<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  @usableFromInline typealias Asked = (key: Key, reply: Reply<Value?>)

  @usableFromInline struct State {
    /// Keys in flight, sent alone or in a batch.
    @usableFromInline var underWay = 0
    @usableFromInline var lastSent = ContinuousClock.now
    @usableFromInline var asked: [Asked] = []

    /// A read is sent immediately while fewer keys than this are in flight: a few while callers are few, otherwise one,
    /// so that batches grow.
    @usableFromInline var limit = few

    init() {}

    @inlinable mutating func sendOne(at now: ContinuousClock.Instant) {
      if underWay == 0, now - lastSent > patience { limit = few }
      underWay += 1
      lastSent = now
    }

    @inlinable mutating func sendAsked(at now: ContinuousClock.Instant) -> [Asked] {
      underWay += asked.count
      lastSent = now
      if asked.count > few { limit = 1 } else if asked.count == 1 { limit = few }
      defer { asked = [] }
      return asked
    }
  }

  @usableFromInline enum Turn {
    case readsAlone
    case waits(Reply<Value?>)
    case leaves(Reply<Value?>, with: [Asked])
  }

  @inlinable static var few: Int { 4 }
  /// When the last statement was sent longer ago than this, the next read is sent immediately, together with the
  /// waiting ones.
  @inlinable static var patience: Duration { .milliseconds(20) }

  @usableFromInline let database: Database
  @usableFromInline let read: @Sendable ([Key], Database) async throws -> [Key: Value]
  @usableFromInline let state = Lock(State())

  /// - Parameters:
  ///   - database: where the values are read.
  ///   - read: reads the values of the keys, which may contain duplicates, in one statement. All callers of a batch
  ///     share its failure, so no key may make the statement fail or slow it down. It omits keys that have no value.
  public init(
    in database: Database,
    _ read: @escaping @Sendable (_ keys: [Key], _ database: Database) async throws -> [Key: Value]
  ) {
    self.database = database
    self.read = read
  }

  /// The value of a key, or nil if it has none. Takes at most twice as long as a single read may take. Cancelling the
  /// task ends its wait immediately.
  ///
  /// - Throws: the error of the read; ``PostgresError`` of kind `overloaded` if
  ///   ``Database/Configuration/maximumWaiting`` callers are already waiting.
  @inlinable public func value(for key: Key) async throws -> Value? {
    try await database.call {
      switch try turn(of: key) {
      case .readsAlone:
        defer { sendNext(after: 1) }
        return try await read([key], database)[key]
      case .waits(let reply):
        return try await reply.value()
      case .leaves(let reply, let asked):
        send(asked)
        return try await reply.value()
      }
    }
  }

  @inlinable func turn(of key: Key) throws -> Turn {
    let (now, maximum) = (ContinuousClock.now, database.configuration.maximumWaiting)
    return try state.withLock { state in
      let isOverdue = now - state.lastSent > Self.patience && state.underWay < maximum
      if state.asked.isEmpty, state.underWay < state.limit || isOverdue {
        state.sendOne(at: now)
        return .readsAlone
      }
      // Callers that gave up do not count.
      if state.asked.count >= maximum { state.asked.removeAll { $0.reply.isDone } }
      guard isOverdue || state.asked.count < maximum else {
        throw PostgresError.tooManyReads
      }
      let reply = Reply<Value?>()
      state.asked.append((key, reply))
      return isOverdue ? .leaves(reply, with: state.sendAsked(at: now)) : .waits(reply)
    }
  }

  @usableFromInline func send(_ asked: [Asked]) {
    Task.detached(executorPreference: database.executor) { [self] in
      do {
        let values = try await Database.$isFinishing.withValue(true) { try await read(asked.map { $0.key }, database) }
        sendNext(after: asked.count)
        for (key, reply) in asked { reply.fulfil(.success(values[key])) }
      } catch {
        sendNext(after: asked.count)
        for (_, reply) in asked { reply.fulfil(.failure(error)) }
      }
    }
  }

  @inlinable func sendNext(after finished: Int) {
    let asked = state.withLock { state -> [Asked] in
      state.underWay -= finished
      return state.asked.isEmpty || state.underWay >= state.limit ? [] : state.sendAsked(at: .now)
    }
    if !asked.isEmpty { send(asked) }
  }
}

extension PostgresError {
  @usableFromInline static var tooManyReads: PostgresError {
    PostgresError(.overloaded, "too many reads are waiting")
  }
}
