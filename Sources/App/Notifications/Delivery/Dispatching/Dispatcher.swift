import Foundation
import Logging
import Postgres
import ServiceLifecycle

/// Processes lease queues: claims rows, sends them and acknowledges the outcomes, all at the same time. ``DeliveryState``
/// makes the decisions. Everything that takes time is a child task of its own, and none waits for another.
struct Dispatcher: Sendable {
  /// A queue, and how its rows are sent.
  struct Source: Sendable {
    let queue: LeaseQueue
    let policy: DeliveryState.Policy
    /// Rereads, in one statement, the data that the sends of these rows depend on. A row without a verdict is no longer
    /// leased.
    let check: @Sendable ([LeasedRow]) async throws -> [Int64: Verdict]
  }

  enum Verdict: Sendable {
    case send(Send)
    /// It is too early. This does not count as an attempt.
    case later(seconds: Double)
    /// The row is no longer useful.
    case withdrawn
    /// No attempt can succeed: the row is malformed.
    case refused(DeliveryFailure)
  }

  struct Send: Sendable {
    let channel: Capacity.Channel
    var recipient: User.ID?
    var device: Device?
    /// The host and port of a webhook.
    var host: String?
    let body: @Sendable () async throws -> Void

    var keys: [Capacity.Key] {
      [.channel(channel)] + (recipient.map { [.recipient($0, channel)] } ?? []) + (host.map { [.host($0)] } ?? [])
    }
  }

  /// The worker's, in `workers` and in the rows that it leases.
  private let id = UUID()
  private let sources: [Source]
  private let concurrency: Int
  private let database: Database
  private let hearing: Hearing
  private let logger: Logger
  private let wakeUps: AsyncStream<Void>
  private let wakeUp: AsyncStream<Void>.Continuation

  /// - Parameters:
  ///   - concurrency: the maximum number of sends in flight on each channel.
  ///   - hearing: whether every ``wake()`` arrives.
  init(
    _ sources: [Source], concurrency: Int, database: Database, hearing: Hearing = Hearing(), logger: Logger
  ) {
    self.sources = sources
    self.hearing = hearing
    self.concurrency = concurrency
    self.database = database
    self.logger = logger
    (wakeUps, wakeUp) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
  }

  /// Signals that there may be work.
  func wake() {
    wakeUp.yield()
  }

  /// Runs once at the most.
  ///
  /// - Returns: the number of claimed runs.
  /// - Throws: the error that stopped the work, unless the mode is `untilStopped`.
  @discardableResult
  func run(_ mode: DeliveryState.Mode) async throws -> Int {
    let state = await withTaskGroup(of: DeliveryState.Event?.self, returning: DeliveryState.self) { group in
      var state = DeliveryState(sources.map(\.policy), mode: mode, concurrency: concurrency, at: now)
      if mode != .oneRound { listenForStop(&group) }
      if mode == .untilStopped { listenForWakeUp(&group) }
      var next: DeliveryState.Event? = .started
      var wasCancelled = false
      while true {
        if Task.isCancelled, !wasCancelled {
          wasCancelled = true
          perform(state.handle(.cancelled, at: now), &group)
        }
        if let event = next {
          if case .woken = event { listenForWakeUp(&group) }
          perform(state.handle(event, at: now), &group)
        }
        guard !state.isDone, let later = await group.next() else { break }
        next = later
      }
      group.cancelAll()
      return state
    }
    if state.hasGivenBackAll { await removeHeartbeat() }
    if let failure = state.failure { throw failure }
    return state.claimed
  }

  private var now: DeliveryState.Moment {
    let now = ContinuousClock.now
    return DeliveryState.Moment(instant: now, timestamp: .now(), hears: hearing.isCertain(at: now))
  }

  // MARK: Events

  private typealias Group = TaskGroup<DeliveryState.Event?>

  private func listenForStop(_ group: inout Group) {
    group.addTask {
      // Throws when it is cancelled, which means the same here.
      try? await gracefulShutdown()
      return .stopRequested
    }
  }

  private func listenForWakeUp(_ group: inout Group) {
    group.addTask {
      for await _ in wakeUps { return .woken }
      return nil
    }
  }

  // MARK: Commands

  private func perform(_ commands: [DeliveryState.Command], _ group: inout Group) {
    for command in commands {
      switch command {
      case .claim(let queue, let scope, let limit):
        group.addTask { .claimed(queue: queue, await result { try await claim(scope, atMost: limit, from: queue) }) }
      case .check(let queue, let checks):
        group.addTask { .checked(checks, await result { try await check(checks, of: queue) }) }
      case .send(let run, let send):
        group.addTask {
          let start = ContinuousClock.now
          let outcome = await outcome(of: send)
          return .sent(run: run, after: .now - start, outcome)
        }
      case .write(let outcomes, let gone):
        group.addTask { .written(failure: await failure { try await write(outcomes, forgetting: gone) }) }
      case .renew(let leases):
        group.addTask { .renewed(failure: await failure { try await renew(leases) }) }
      case .setAlarm(let time):
        group.addTask {
          try? await Task.sleep(until: time, clock: .continuous)
          return .alarm(time)
        }
      case .cutShort: group.cancelAll()
      case .logFailure(let queue, let row, let failure):
        logger.warning(
          "not delivered",
          metadata: sources[queue].queue.facts(about: row).merging(["error": "\(failure)"]) { $1 })
      case .logDeadLetter(let queue, let row):
        logger.error(
          "dead letter",
          metadata: sources[queue].queue.facts(about: row).merging(["attempts": "\(row.attempts + 1)"]) { $1 })
      }
    }
  }

  private func table(of queue: Int) -> String { sources[queue].queue.table }

  private func result<Value: Sendable>(_ body: () async throws -> Value) async -> Result<Value, any Error> {
    do { return .success(try await body()) } catch { return .failure(error) }
  }

  private func failure(_ body: () async throws -> Void) async -> (any Error)? {
    do { try await body() } catch { return error }
    return nil
  }

  /// Cancelling the task ends a claim that was not sent. One that was sent is waited for, because it commits anyway, and
  /// its rows must be given back.
  private func claim(_ scope: LeaseQueue.Scope, atMost limit: Int, from queue: Int) async throws -> LeaseQueue.Claim {
    do {
      let claim = try await sources[queue].queue.claim(scope, atMost: limit, for: id, lease: UUID(), in: database)
      if claim.orphans > 0 {
        logger.warning(
          "a worker died", metadata: ["table": "\(table(of: queue))", "in_flight": "\(claim.orphans)"])
      }
      for row in claim.dead {
        logger.error(
          "dead letter: workers died while this was in flight", metadata: sources[queue].queue.facts(about: row))
      }
      return claim
    } catch {
      warn("rows cannot be claimed", error, ["table": "\(table(of: queue))"])
      throw error
    }
  }

  private func check(_ checks: [DeliveryState.Check], of queue: Int) async throws -> [Int64: Verdict] {
    do {
      return try await sources[queue].check(checks.map(\.row))
    } catch {
      warn("sends cannot be prepared", error)
      throw error
    }
  }

  private func outcome(of send: Send) async -> DeliveryState.Outcome {
    do {
      try await send.body()
      return .delivered
    } catch {
      // It is unknown whether a send that was cut short arrived, so it is sent again.
      if Task.isCancelled { return .notTried }
      let failure = DeliveryFailure(error)
      return failure.isLocal ? .notTried : .failed(failure)
    }
  }

  /// Writes outcomes even if the task is cancelled: otherwise the rows would be sent again.
  private func write(_ outcomes: [Acknowledgements], forgetting gone: [Device]) async throws {
    let writing = Task {
      // Rows of forgotten devices are deleted with them; if they were given back, they would be sent again. A device
      // that has another token by now, or was registered again, is kept.
      if !gone.isEmpty {
        let these: SQL = "SELECT * FROM unnest(\(gone.map(\.id)), \(gone.map(\.token)), \(gone.map(\.registeredAt)))"
        try await database.batch(
          LeaseQueue.byIndex, Device.forgetting(where: "(id, token, registered_at) IN (\(these))"))
      }
      let statements = zip(sources, outcomes).flatMap { $1.statements(for: $0.queue) }
      if !statements.isEmpty { try await commit([LeaseQueue.byIndex] + statements) }
    }
    do {
      try await writing.value
    } catch {
      logger.warning("acknowledgements cannot be written", metadata: ["error": "\(error)"])
      throw error
    }
  }

  /// Writes the heartbeat and renews leases.
  private func renew(_ leases: [[LeasedRow.Lease]]) async throws {
    let renewals = zip(sources, leases).filter { !$1.isEmpty }.map { $0.queue.renewing($1) }
    do {
      try await commit([LeaseQueue.byIndex, Heartbeat.writing(of: id)] + renewals)
    } catch {
      warn("leases could not be renewed", error)
      throw error
    }
  }

  private func commit(_ statements: [SQL]) async throws {
    _ = try await database.transactionWithResults(repeating: true) { transaction in
      for statement in statements { transaction.atCommit(statement) }
    }
  }

  /// Removes this worker's heartbeat, so that no other worker waits for it. Not cut short either.
  private func removeHeartbeat() async {
    let removing = Task { try await database.batch(Heartbeat.removing(of: id)) }
    if case .failure(let error) = await removing.result {
      logger.warning("the worker's heartbeat was not removed", metadata: ["error": "\(error)"])
    }
  }

  /// Logs a failure, unless the task was cut short.
  private func warn(_ message: Logger.Message, _ error: any Error, _ metadata: Logger.Metadata = [:]) {
    guard !Task.isCancelled else { return }
    logger.warning(message, metadata: metadata.merging(["error": "\(error)"]) { $1 })
  }
}
