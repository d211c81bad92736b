import DequeModule
import Foundation
import Logging
import Postgres
import ServiceLifecycle

/// Works on one kind of row of the queue: claims, sends, and writes down what has become of each, all at the same time.
/// One task decides; whatever takes time is a child task of its own, and none waits for another.
///
/// What is claimed together is a chain: rows of one recipient, subject and device, of which each is sent when the one
/// before it was.
actor Delivery {
  /// What is to be sent.
  enum Parcel: Sendable {
    case push(Push, Device)
    /// For somebody without any device.
    case unheard(Push)
    /// A mail, or a grant to revoke.
    case row(NotificationQueue.Item)
  }

  struct Settings: Sendable {
    let kind: NotificationQueue.Kind
    /// Sends under way at once.
    let concurrency: Int
    /// Chains held at once.
    let chains: Int
    /// More are claimed when so few are held.
    let fewChains: Int
    /// Seconds from the change after which what still fails is given up.
    let patience: Int
    /// Whether it matters what is for people without any device.
    let tellsOfUnheard: Bool
  }

  enum Mode: Sendable {
    case untilStopped
    case untilNothingIsDue
    case oneBatch
  }

  typealias Instant = ContinuousClock.Instant
  typealias Item = NotificationQueue.Item
  typealias Held = NotificationQueue.Held

  /// Sends under way at once to one device.
  static let concurrencyOfDevice = 4
  static let lease = Duration.seconds(NotificationQueue.leaseSeconds)
  /// So often that a claim outlives some failures to renew it.
  private static let renewalInterval = Duration.seconds(1)
  /// At least so often a claim looks at all that is due: see ``NotificationQueue/claim(_:isFull:atMost:lease:in:)``. With
  /// the lease it is less than the five seconds in which another worker takes over.
  private static let fullInterval = Duration.milliseconds(800)
  /// Between two claims while little is due; while nothing is, it doubles.
  private static let shortestPause = Duration.milliseconds(2)
  /// A change is on its way within that time of its commit, even if nobody is woken.
  private static let longestPause = Duration.milliseconds(50)
  /// What is under way when the worker is asked to stop has so long to end. Then it is cut short and given back.
  private static let grace = Duration.seconds(4)

  let settings: Settings
  let database: Database
  let logger: Logger
  let deliver: @Sendable (Parcel) async throws -> Void
  private let wakeUps: AsyncStream<Void>
  private let wakeUp: AsyncStream<Void>.Continuation

  var chains: [Int: Chain] = [:]
  private var nextNumber = 0
  /// All rows that this worker believes to hold, and by which claim: until what has become of them is written.
  var held: [Int64: UUID] = [:]
  /// Chains whose next step may begin.
  var ready: Deque<Int> = []
  var jobs: Deque<Job> = []
  /// Jobs that wait for their device.
  var parked: [Device.ID: Deque<Job>] = [:]
  var sending = 0
  var sendingTo: [Device.ID: Int] = [:]
  /// Devices that are about to be forgotten.
  var gone: Set<Device.ID> = []

  var receipts = Receipts()
  var isWriting = false
  var writeFailures = 0
  var writeAt = Instant.now

  private var isClaiming = false
  private var claimFailures = 0
  private var claimAt = Instant.now
  private var fullAt: Instant?
  private var fullIsNext = true
  private var pause = Delivery.shortestPause
  private var mustLookAgain = false
  var claimed = 0
  private var isExhausted = false
  private var waitsForIdleness = false

  private var isRenewing = false
  private var renewAt = Instant.now

  private var alarms: [Instant] = []
  var isStopping = false
  private var stopBy = Instant.now
  var isCutShort = false
  var failure: (any Error)?

  init(
    _ settings: Settings, database: Database, logger: Logger,
    deliver: @escaping @Sendable (Parcel) async throws -> Void
  ) {
    self.settings = settings
    self.database = database
    self.logger = logger
    self.deliver = deliver
    (wakeUps, wakeUp) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
  }

  /// Says that there may be something to do.
  nonisolated func wake() {
    wakeUp.yield()
  }

  // MARK: The task that decides

  /// - Returns: how many chains were claimed.
  /// - Throws: what kept it from claiming, unless it goes on until it is stopped.
  @discardableResult
  func run(_ mode: Mode) async throws -> Int {
    await withTaskGroup(of: Happening.self) { group in
      if mode != .oneBatch {
        group.addTask {
          // Throws when it is cancelled, which is the same here.
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
    if let failure { throw failure }
    return claimed
  }

  private func isDone(_ mode: Mode) -> Bool {
    guard chains.isEmpty, receipts.isEmpty, !isWriting, !isClaiming, sending == 0 else { return false }
    return switch mode {
    case .untilStopped: isStopping
    case .untilNothingIsDue: isStopping || isExhausted
    case .oneBatch: isStopping || fullAt != nil
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
    case .claimed(let claimed): take(claimed, mode)
    case .sent(let job, let outcome): end(job, outcome)
    case .written(let receipts, let failure): settle(receipts, failure)
    case .renewed(let renewed): keep(renewed)
    case .alarm(let time): alarms.removeAll { $0 == time }
    case .woken:
      claimAt = .now
      pause = Self.shortestPause
      mustLookAgain = true
      listen(&group)
    case .stopping: stop()
    case .nothing: break
    }
  }

  /// Begins whatever may begin now, and sees to it that it is asked again in time for what may not yet.
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
    beginSends(now, &group)
    // Cut short, nothing waits for anything but what is under way.
    if !receipts.isEmpty, !isWriting, isCutShort || isTime(writeAt, now, &group) { write(&group) }
    if !isStopping, !isClaiming, mayClaim(mode), isTime(claimAt, now, &group) { claim(mode, now, &group) }
    guard !isCutShort else { return }
    if !held.isEmpty, !isRenewing, isTime(renewAt, now, &group) { renew(now, &group) }
    if isStopping { _ = isTime(stopBy, now, &group) }
  }

  /// Whether it is so late already. If not, it is asked again then.
  private func isTime(_ time: Instant, _ now: Instant, _ group: inout TaskGroup<Happening>) -> Bool {
    if now >= time { return true }
    guard !alarms.contains(where: { $0 <= time }) else { return false }
    alarms.append(time)
    group.addTask {
      try? await Task.sleep(until: time, clock: .continuous)
      return .alarm(time)
    }
    return false
  }

  private func stop() {
    guard !isStopping else { return }
    isStopping = true
    stopBy = .now + Self.grace
    for chain in chains.values where chain.step == nil { ready.append(chain.number) }
  }

  // MARK: Claiming

  private func mayClaim(_ mode: Mode) -> Bool {
    switch mode {
    case .oneBatch where fullAt != nil: return false
    case .untilNothingIsDue where isExhausted: return false
    case .untilNothingIsDue where waitsForIdleness: return held.isEmpty
    // Of rows, too, there must not be ever more while they cannot be written.
    default: return chains.count < settings.fewChains && held.count < 4 * settings.chains
    }
  }

  func claim(_ mode: Mode, _ now: Instant, _ group: inout TaskGroup<Happening>) {
    let isFull = mode != .untilStopped || fullIsNext || fullAt.map { now >= $0 + Self.fullInterval } ?? true
    let (limit, wasIdle) = (settings.chains - chains.count, held.isEmpty)
    let (database, kind, logger) = (database, settings.kind, logger)
    isClaiming = true
    mustLookAgain = false
    group.addTask {
      let lease = UUID()
      var result: Result<[[Item]], any Error>
      do {
        result = .success(
          try await NotificationQueue.claim(kind, isFull: isFull, atMost: limit, lease: lease, in: database))
      } catch {
        result = .failure(error)
      }
      var targets: [NotificationQueue.Targets]?
      if case .success(let chains) = result {
        targets = await Self.targets(of: chains.compactMap(\.first), kind, in: database, logger: logger)
      }
      return .claimed(
        Claimed(
          lease: lease, started: now, isFull: isFull, limit: limit, wasIdle: wasIdle, result: result, targets: targets))
    }
  }

  /// - Returns: nil if the database does not tell; then it is asked again with the next renewal.
  static func targets(
    of rows: [Item], _ kind: NotificationQueue.Kind, in database: Database, logger: Logger
  ) async -> [NotificationQueue.Targets]? {
    guard kind == .pushes, !rows.isEmpty else { return rows.map { _ in NotificationQueue.Targets() } }
    do {
      return try await NotificationQueue.targets(of: rows, in: database)
    } catch {
      logger.warning("devices cannot be looked up", metadata: ["error": "\(error)"])
      return nil
    }
  }

  private func take(_ claim: Claimed, _ mode: Mode) {
    isClaiming = false
    switch claim.result {
    case .failure(let error):
      if mode != .untilStopped { failure = error }
      if mode != .untilStopped || Task.isCancelled { return stop() }
      claimFailures += 1
      let wait: Duration = min(.seconds(5), .milliseconds(100) * (1 << min(claimFailures, 6)))
      claimAt = Instant.now + wait
      logger.warning(
        "the queue cannot be worked on", metadata: ["error": "\(error)", "failures": "\(claimFailures)"])
    case .success(let rows):
      claimFailures = 0
      claimed += rows.count
      let isWhole = rows.count < claim.limit
      if claim.isFull {
        fullAt = claim.started
        fullIsNext = !isWhole
      }
      for (place, rows) in rows.enumerated() {
        if held.isEmpty { renewAt = .now + Self.renewalInterval }
        for row in rows { held[row.id] = claim.lease }
        chains[nextNumber] = Chain(
          nextNumber, rows, lease: claim.lease, targets: claim.targets?[place], heldUntil: claim.started + Self.lease)
        ready.append(nextNumber)
        nextNumber += 1
      }
      if rows.isEmpty {
        isExhausted = claim.wasIdle
        waitsForIdleness = true
        pause = min(pause * 2, Self.longestPause)
      } else {
        waitsForIdleness = false
        pause = Self.shortestPause
      }
      // Woken meanwhile, it may have looked too early.
      let isWanted = !isWhole || mustLookAgain || mode != .untilStopped
      claimAt = isWanted ? Instant.now : Instant.now + pause
      if let fullAt { claimAt = min(claimAt, fullAt + Self.fullInterval) }
    }
  }

  // MARK: Holding

  private func renew(_ now: Instant, _ group: inout TaskGroup<Happening>) {
    isRenewing = true
    let asked = held.map { Held(id: $0.key, lease: $0.value) }
    // What has waited for so long may have other devices by now.
    let waiting = isStopping ? [] : chains.values.filter { $0.step == nil && !$0.rows.isEmpty }
    let (numbers, rows) = (waiting.map(\.number), waiting.compactMap(\.rows.first))
    let (before, database, kind, logger) = (nextNumber, database, settings.kind, logger)
    group.addTask {
      var result: Result<Set<Int64>, any Error>
      do {
        result = .success(try await NotificationQueue.renew(asked, in: database))
      } catch {
        result = .failure(error)
      }
      let targets = await Self.targets(of: rows, kind, in: database, logger: logger)
      return .renewed(
        Renewed(asked: asked, started: now, before: before, result: result, waiting: numbers, targets: targets))
    }
  }

  func keep(_ renewed: Renewed) {
    isRenewing = false
    renewAt = renewed.started + Self.renewalInterval
    for (place, number) in renewed.waiting.enumerated() {
      guard let targets = renewed.targets?[place], let chain = chains[number], chain.step == nil else { continue }
      if chain.targets == nil { ready.append(number) }
      chain.targets = targets
    }
    switch renewed.result {
    case .failure(let error):
      renewAt = .now + .milliseconds(250)
      if !Task.isCancelled { logger.warning("a claim could not be renewed", metadata: ["error": "\(error)"]) }
    case .success(let kept):
      for chain in chains.values where chain.number < renewed.before {
        chain.isHeldUntil = max(chain.isHeldUntil, renewed.started + Self.lease)
      }
      guard kept.count < renewed.asked.count else { return }
      let lost = Set(renewed.asked.filter { !kept.contains($0.id) && held[$0.id] == $0.lease }.map(\.id))
      for id in lost { held[id] = nil }
      for chain in chains.values where chain.number < renewed.before { chain.lose(lost, &receipts) }
      for chain in chains.values where chain.step == nil && chain.rows.isEmpty { ready.append(chain.number) }
    }
  }
}
