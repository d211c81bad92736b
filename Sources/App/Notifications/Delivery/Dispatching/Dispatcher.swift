import Foundation
import Logging
import Postgres
import ServiceLifecycle

/// Processes lease queues: claims rows, sends them and acknowledges the outcomes, all at the same time. One task makes
/// the decisions. Everything that takes time is a child task of its own, and none waits for another.
actor Dispatcher {
  /// A queue, and how its rows are sent.
  struct Source: Sendable {
    let queue: LeaseQueue
    /// Seconds after the change at which a row that still fails becomes a dead letter.
    let patience: Int
    /// Without a wake-up, rows are found within this time.
    var longestPause = Duration.milliseconds(50)
    /// Rereads, in one statement, the data that the sends of these rows depend on. A row without a verdict is no longer
    /// leased.
    let prepare: @Sendable ([LeasedRow]) async throws -> [Int64: Verdict]
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

  enum Mode: Sendable {
    case untilStopped
    /// Rounds, until one finds nothing.
    case untilNothingIsDue
    case oneRound
  }

  typealias Instant = ContinuousClock.Instant

  /// Short enough that a lease outlives some failed renewals.
  static let renewalInterval = Duration.seconds(1)
  /// How long sends in flight may take to end after the worker is asked to stop. Then they are cut short and given
  /// back.
  private static let grace = Duration.seconds(4)
  /// How long a claimed row waits for a slot before it is given back.
  static let longestLocalWait = Duration.milliseconds(250)
  /// How long suspects are sent, one after the other, before other rows have their turn again.
  static let soloTime = Duration.seconds(1)
  /// How many hosts that did not respond are remembered.
  static let maximumCircuits = 10_000

  let id = UUID()
  let sources: [Source]
  let database: Database
  let logger: Logger
  /// The maximum number of oldest rows leased at once, for each source.
  let maximumRuns: Int
  private let wakeUps: AsyncStream<Void>
  private let wakeUp: AsyncStream<Void>.Continuation

  var capacity: Capacity
  var circuits: [String: Circuit] = [:]

  var runs: [Int: Run] = [:]
  var nextRun = 0
  /// Runs whose next row must be checked again before it is sent.
  var ready: [Int] = []
  /// Runs whose next row waits for a slot.
  var parked: [Int] = []
  var preparations = 0
  var prepareAt = Instant.now
  var prepareFailures = 0
  var sending = 0

  var acknowledgements: [Acknowledgements]
  var isWriting = false
  var writeFailures = 0
  var writeAt = Instant.now
  /// Devices that their providers no longer know.
  var gone: [Device] = []
  /// Acknowledgements that are being written.
  var unwritten: [Acknowledgements]
  /// Rows whose deletion a claim in flight may not have seen.
  var finished: [Set<Int64>]

  var polling: [Polling]
  var claiming: Set<Int> = []
  /// Sources that have claimed in this round, and whether any of them found something.
  var claimedInRound: Set<Int> = []
  var roundFoundSomething = false
  var claimed = 0
  /// Sources with rows that must be sent alone.
  var suspected: Set<Int> = []
  var soloUntil: Instant?

  var isRenewing = false
  var renewAt = Instant.now

  private var alarms: [Instant] = []
  var isStopping = false
  private var stopBy = Instant.now
  var isCutShort = false
  var failure: (any Error)?

  /// - Parameter concurrency: the maximum number of sends in flight on each channel.
  init(_ sources: [Source], concurrency: Int, database: Database, logger: Logger) {
    self.sources = sources
    self.database = database
    self.logger = logger
    maximumRuns = max(16, 4 * concurrency)
    capacity = Capacity(perChannel: concurrency)
    acknowledgements = sources.map { _ in Acknowledgements() }
    unwritten = acknowledgements
    finished = sources.map { _ in [] }
    polling = sources.map { Polling(longestPause: $0.longestPause) }
    (wakeUps, wakeUp) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
  }

  /// Signals that there may be work.
  nonisolated func wake() {
    wakeUp.yield()
  }

  // MARK: Deciding

  /// - Returns: the number of claimed runs.
  /// - Throws: the error that stopped the work, unless the mode is ``Mode/untilStopped``.
  @discardableResult
  func run(_ mode: Mode) async throws -> Int {
    await withTaskGroup(of: Happening.self) { group in
      if mode != .oneRound {
        group.addTask {
          // Throws when it is cancelled, which means the same here.
          try? await gracefulShutdown()
          return .stopping
        }
      }
      if mode == .untilStopped { listen(&group) }
      schedule(mode, &group)
      while !isDone(mode), let happening = await group.next() {
        handle(happening, mode, &group)
        schedule(mode, &group)
      }
      group.cancelAll()
    }
    await leave()
    if let failure { throw failure }
    return claimed
  }

  private func isDone(_ mode: Mode) -> Bool {
    guard holdsNothing, sending == 0 else { return false }
    if isStopping { return true }
    return switch mode {
    case .untilStopped: false
    case .oneRound: claimedInRound.count == sources.count
    case .untilNothingIsDue: claimedInRound.count == sources.count && !roundFoundSomething && suspected.isEmpty
    }
  }

  private func listen(_ group: inout TaskGroup<Happening>) {
    let wakeUps = wakeUps
    group.addTask {
      for await _ in wakeUps { return .woken }
      return .nothing
    }
  }

  private func handle(_ happening: Happening, _ mode: Mode, _ group: inout TaskGroup<Happening>) {
    switch happening {
    case .claimed(let result): take(result, mode)
    case .prepared(let result): begin(result, mode, &group)
    case .sent(let run, let time, let outcome): end(run, after: time, outcome)
    case .written(let written, let failure): settle(written, failure)
    case .renewed(let failure): renewed(failure)
    case .alarm(let time): alarms.removeAll { $0 == time }
    case .woken:
      for place in polling.indices { polling[place].wake(at: .now) }
      listen(&group)
    case .stopping: stop()
    case .nothing: break
    }
  }

  /// Begins everything that can begin now, and makes sure that it is called again in time for the rest.
  private func schedule(_ mode: Mode, _ group: inout TaskGroup<Happening>) {
    let now = Instant.now
    if Task.isCancelled, !isCutShort {
      stop()
      isCutShort = true
    }
    if isStopping, !isCutShort, now >= stopBy {
      isCutShort = true
      group.cancelAll()
    }
    if isStopping || isSolo { releaseIdle() }
    serveParked(mode, now, &group)
    if !isCutShort, !ready.isEmpty, preparations < 2, isTime(prepareAt, now, &group) { prepare(&group) }
    if acknowledgements.contains(where: { !$0.isEmpty }) || !gone.isEmpty, !isWriting,
      isCutShort || isTime(writeAt, now, &group)
    {
      write(&group)
    }
    if !isStopping { claim(mode, now, &group) }
    guard !isCutShort else { return }
    if !isRenewing, isTime(renewAt, now, &group) { renew(now, &group) }
    if isStopping { _ = isTime(stopBy, now, &group) }
  }

  /// Whether the time has come. If not, ``schedule(_:_:)`` is called again then.
  func isTime(_ time: Instant, _ now: Instant, _ group: inout TaskGroup<Happening>) -> Bool {
    if now >= time { return true }
    guard !alarms.contains(where: { $0 <= time }) else { return false }
    alarms.append(time)
    group.addTask {
      try? await Task.sleep(until: time, clock: .continuous)
      return .alarm(time)
    }
    return false
  }

  func stop() {
    guard !isStopping else { return }
    isStopping = true
    stopBy = .now + Self.grace
  }

  /// Removes this worker's heartbeat, so that no other worker waits for it.
  private func leave() async {
    guard failure == nil, writeFailures == 0 else { return }
    let (database, id) = (database, id)
    let leaving = Task { try await database.batch(Worker.leaving(id)) }
    if case .failure(let error) = await leaving.result {
      logger.warning("the worker's heartbeat was not removed", metadata: ["error": "\(error)"])
    }
  }
}
