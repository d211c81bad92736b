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
  fileprivate typealias Item = NotificationQueue.Item
  fileprivate typealias Held = NotificationQueue.Held

  /// Sends under way at once to one device.
  private static let concurrencyOfDevice = 4
  private static let lease = Duration.seconds(NotificationQueue.leaseSeconds)
  /// So often that a claim outlives some failures to renew it.
  private static let renewalInterval = Duration.seconds(1)
  /// At least so often a claim looks at all that is due: see ``NotificationQueue/claim(_:isFull:atMost:lease:in:)``. With
  /// the lease it is less than the five seconds in which another worker takes over.
  private static let fullInterval = Duration.milliseconds(800)
  /// Between two claims while little is due; while nothing is, it doubles.
  private static let shortestPause = Duration.milliseconds(2)
  private static let longestPause = Duration.milliseconds(50)
  /// What is under way when the worker is asked to stop has so long to end. Then it is cut short and given back.
  private static let grace = Duration.seconds(4)

  private let settings: Settings
  private let database: Database
  private let logger: Logger
  private let deliver: @Sendable (Parcel) async throws -> Void
  /// Whether wake-ups come, so that the queue need not be looked at as often.
  private let isWoken: @Sendable () -> Bool
  private let wakeUps: AsyncStream<Void>
  private let wakeUp: AsyncStream<Void>.Continuation

  private var chains: [Int: Chain] = [:]
  private var nextNumber = 0
  /// All rows that this worker believes to hold, and by which claim: until what has become of them is written.
  private var held: [Int64: UUID] = [:]
  /// Chains whose next step may begin.
  private var ready: Deque<Int> = []
  private var jobs: Deque<Job> = []
  /// Jobs that wait for their device.
  private var parked: [Device.ID: Deque<Job>] = [:]
  private var sending = 0
  private var sendingTo: [Device.ID: Int] = [:]
  /// Devices that are about to be forgotten.
  private var gone: Set<Device.ID> = []

  private var receipts = Receipts()
  private var isWriting = false
  private var writeFailures = 0
  private var writeAt = Instant.now

  private var isClaiming = false
  private var claimFailures = 0
  private var claimAt = Instant.now
  private var fullAt: Instant?
  private var fullIsNext = true
  private var pause = Delivery.shortestPause
  private var mustLookAgain = false
  private var claimed = 0
  private var isExhausted = false
  private var waitsForIdleness = false

  private var isRenewing = false
  private var renewAt = Instant.now

  private var alarms: [Instant] = []
  private var isStopping = false
  private var stopBy = Instant.now
  private var isCutShort = false
  private var failure: (any Error)?

  init(
    _ settings: Settings, database: Database, logger: Logger, isWoken: @escaping @Sendable () -> Bool = { false },
    deliver: @escaping @Sendable (Parcel) async throws -> Void
  ) {
    self.settings = settings
    self.database = database
    self.logger = logger
    self.isWoken = isWoken
    self.deliver = deliver
    (wakeUps, wakeUp) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
  }

  /// Says that there may be something to do.
  nonisolated func wake() {
    wakeUp.yield()
  }

  /// What child tasks come back with.
  private enum Happening: Sendable {
    case claimed(Claimed)
    case sent(Job, Outcome)
    case written(Receipts, failure: (any Error)?)
    case renewed(Renewed)
    case alarm(Instant)
    case woken
    case stopping
    case nothing
  }

  private struct Claimed: Sendable {
    let lease: UUID
    let started: Instant
    let isFull: Bool
    let limit: Int
    let wasIdle: Bool
    let result: Result<[[Item]], any Error>
    /// Nil if they are not known.
    let targets: [NotificationQueue.Targets]?
  }

  private struct Renewed: Sendable {
    let asked: [Held]
    let started: Instant
    /// Chains of smaller numbers were asked for.
    let before: Int
    let result: Result<Set<Int64>, any Error>
    let waiting: [Int]
    let targets: [NotificationQueue.Targets]?
  }

  fileprivate enum Outcome: Sendable {
    case delivered
    /// Not begun, or cut short: nobody knows.
    case notTried
    case failed(String, DeliveryFailure.Remedy)
  }

  /// One parcel of a chain's step.
  private struct Job: Sendable {
    let chain: Int
    let place: Int
    let device: Device.ID?
    let parcel: Parcel
  }

  private final class Chain {
    let number: Int
    let lease: UUID
    /// What its next steps are made of.
    var rows: ArraySlice<Item>
    var targets: NotificationQueue.Targets?
    /// Devices that could not be told, and have rows of their own from there on.
    var apart: Set<Device.ID> = []
    var step: Step?
    /// By when the claim, as far as this worker knows, may have passed to another.
    var isHeldUntil: Instant
    var isLost = false

    init(_ number: Int, _ rows: [Item], lease: UUID, targets: NotificationQueue.Targets?, heldUntil: Instant) {
      self.number = number
      self.rows = rows[...]
      self.lease = lease
      self.targets = targets
      isHeldUntil = heldUntil
    }

    func holds(_ rows: some Sequence<Item>) -> [Held] {
      rows.map { Held(id: $0.id, lease: lease) }
    }

    /// Goes no further than where another worker has taken over, or somebody deletes a row: what is behind is given back.
    func lose(_ lost: Set<Int64>, _ receipts: inout Receipts) {
      if step?.rows.contains(where: { lost.contains($0.id) }) == true { isLost = true }
      guard let place = rows.firstIndex(where: { lost.contains($0.id) }) else { return }
      receipts.release(holds(rows[(place + 1)...]))
      rows = rows[..<place]
    }
  }

  /// A notification on its way to all of its devices. Usually of one row.
  private struct Step {
    let rows: [Item]
    let newest: Item
    /// As it is sent, where several rows are one.
    let payload: JSONDocument?
    /// Nil in its place: to no device.
    let devices: [Device?]
    /// Behind something older, or at fault before.
    let spooled: [Device.ID]
    var outcomes: [Outcome]
    var open: Int
  }

  // MARK: The task that decides

  /// - Returns: how many chains were claimed.
  /// - Throws: what kept it from claiming, unless it goes on until it is stopped.
  @discardableResult
  func run(_ mode: Mode) async throws -> Int {
    await withTaskGroup(of: Happening.self) { group in
      if mode == .untilStopped {
        group.addTask {
          // Throws when it is cancelled, which is the same here.
          try? await gracefulShutdown()
          return .stopping
        }
        listen(&group)
      }
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

  private func claim(_ mode: Mode, _ now: Instant, _ group: inout TaskGroup<Happening>) {
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
  private static func targets(
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
        pause = min(pause * 2, isWoken() ? Self.fullInterval : Self.longestPause)
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

  private func keep(_ renewed: Renewed) {
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

  // MARK: Sending

  private func beginSends(_ now: Instant, _ group: inout TaskGroup<Happening>) {
    if isStopping {
      jobs += parked.values.joined()
      parked = [:]
    }
    while isStopping || sending < settings.concurrency {
      if let job = jobs.popFirst() {
        begin(job, now, &group)
      } else if let number = ready.popFirst() {
        if let chain = chains[number] { advance(chain) }
      } else {
        return
      }
    }
  }

  private func begin(_ job: Job, _ now: Instant, _ group: inout TaskGroup<Happening>) {
    guard let chain = chains[job.chain], !isStopping, !chain.isLost, now < chain.isHeldUntil,
      job.device.map({ !gone.contains($0) }) ?? true
    else { return note(job, .notTried) }
    if let device = job.device {
      let underWay = sendingTo[device, default: 0]
      guard underWay < Self.concurrencyOfDevice else {
        parked[device, default: []].append(job)
        return
      }
      sendingTo[device] = underWay + 1
    }
    sending += 1
    let deliver = deliver
    group.addTask {
      do {
        try await deliver(job.parcel)
        return .sent(job, .delivered)
      } catch {
        // Of what is cut short nobody knows whether it arrived: it is sent again.
        if Task.isCancelled { return .sent(job, .notTried) }
        let failure = error as? DeliveryFailure
        return .sent(job, .failed(failure?.description ?? "\(error)", failure?.remedy ?? .later(seconds: nil)))
      }
    }
  }

  private func end(_ job: Job, _ outcome: Outcome) {
    sending -= 1
    if let device = job.device {
      let underWay = sendingTo[device, default: 1] - 1
      sendingTo[device] = underWay == 0 ? nil : underWay
      if let next = parked[device]?.popFirst() {
        jobs.prepend(next)
        if parked[device]?.isEmpty == true { parked[device] = nil }
      }
    }
    note(job, outcome)
  }

  private func note(_ job: Job, _ outcome: Outcome) {
    guard let chain = chains[job.chain], var step = chain.step else { return }
    step.outcomes[job.place] = outcome
    step.open -= 1
    chain.step = step.open == 0 ? nil : step
    guard step.open == 0 else { return }
    conclude(step, of: chain)
    ready.append(chain.number)
  }

  /// Makes a chain's next step. What goes to nobody is done at once.
  private func advance(_ chain: Chain) {
    while chain.step == nil {
      if isStopping || chain.isLost {
        receipts.release(chain.holds(chain.rows))
        chain.rows = []
      }
      guard !chain.rows.isEmpty else {
        chains[chain.number] = nil
        return
      }
      // Until they are known, it waits.
      guard let targets = chain.targets else { return }
      begin(chain, targets)
    }
  }

  private func begin(_ chain: Chain, _ targets: NotificationQueue.Targets) {
    let (rows, payload) = Self.together(chain.rows, settings.kind)
    guard let newest = rows.last else { return }
    chain.rows = chain.rows.dropFirst(rows.count)
    var parcels: [(device: Device?, parcel: Parcel)] = []
    var spooled: [Device.ID] = []
    if settings.kind == .mails {
      parcels = [(nil, .row(newest))]
    } else if !targets.muted.contains(newest.type) {
      let push = Push(newest, payload ?? newest.payload)
      for (device, isBehind) in targets.devices {
        if isBehind || chain.apart.contains(device.id) || gone.contains(device.id) {
          spooled.append(device.id)
        } else {
          parcels.append((device, .push(push, device)))
        }
      }
      if targets.devices.isEmpty, newest.device == nil, settings.tellsOfUnheard { parcels = [(nil, .unheard(push))] }
    }
    let step = Step(
      rows: rows, newest: newest, payload: payload, devices: parcels.map(\.device), spooled: spooled,
      outcomes: parcels.map { _ in .notTried }, open: parcels.count)
    guard !parcels.isEmpty else { return finish(step, of: chain) }
    chain.step = step
    for (place, parcel) in parcels.enumerated() {
      jobs.append(Job(chain: chain.number, place: place, device: parcel.device?.id, parcel: parcel.parcel))
    }
  }

  /// The rows that are sent as one: the first, or as many edits of an event as wait one after the other. What was tried
  /// already is sent again as it was.
  ///
  /// - Returns: with what is told of several.
  private static func together(
    _ rows: ArraySlice<Item>, _ kind: NotificationQueue.Kind
  ) -> (rows: [Item], payload: JSONDocument?) {
    let edits = Array(rows.prefix { $0.type == Notice.Kind.eventUpdated.rawValue && $0.attempts == 0 })
    guard kind == .pushes, edits.count > 1, let merged = Notice.merged(edits.map(\.payload)) else {
      return (Array(rows.prefix(1)), nil)
    }
    return (edits, merged)
  }

  // MARK: What has become of it

  private func conclude(_ step: Step, of chain: Chain) {
    let isUntouched = step.outcomes.allSatisfy { if case .notTried = $0 { true } else { false } }
    if isUntouched {
      // Given back, and what is behind it.
      receipts.release(chain.holds(step.rows) + chain.holds(chain.rows))
      chain.rows = []
    } else if settings.kind == .pushes, step.newest.device == nil {
      divide(step, of: chain)
    } else {
      judge(step, of: chain)
    }
  }

  private func finish(_ step: Step, of chain: Chain) {
    receipts.finish(chain.holds(step.rows))
    for device in step.spooled { receipts.spool(step.newest.id, for: device, step.payload) }
  }

  /// Ends a row that was for all devices: those that were not told have rows of their own from here on.
  private func divide(_ step: Step, of chain: Chain) {
    finish(step, of: chain)
    let newest = step.newest
    for (device, outcome) in zip(step.devices, step.outcomes) {
      guard let device else { continue }
      switch outcome {
      case .delivered: continue
      case .notTried: receipts.spool(newest.id, for: device.id, step.payload)
      case .failed(let error, let remedy):
        log(error, newest)
        switch remedy {
        case .forgettingTheDevice:
          // Goes with the device, unless that has another token by then.
          receipts.spool(newest.id, for: device.id, step.payload)
          forget(device, of: newest.recipient)
        case .later(let seconds) where !isOver(newest):
          let delay = Self.delay(after: newest.attempts, notBefore: seconds)
          receipts.retry(newest.id, for: device.id, step.payload, after: delay, because: error)
        default:
          bury(newest, for: device.id, step.payload, because: error)
          continue
        }
      }
      chain.apart.insert(device.id)
    }
  }

  /// Ends a row of one device, a mail, or whatever goes one way only.
  private func judge(_ step: Step, of chain: Chain) {
    let (held, newest) = (chain.holds(step.rows), step.newest)
    guard case .failed(let error, let remedy) = step.outcomes[0] else { return receipts.finish(held) }
    log(error, newest)
    switch remedy {
    case .forgettingTheDevice where step.devices[0] != nil:
      if let device = step.devices[0] { forget(device, of: newest.recipient) }
      receipts.release(held)
    case .later(let seconds) where !isOver(newest):
      receipts.finish(held.dropLast())
      let delay = Self.delay(after: newest.attempts, notBefore: seconds)
      receipts.retry(Held(id: newest.id, lease: chain.lease), step.payload, after: delay, because: error)
    default:
      receipts.finish(held)
      bury(newest, for: newest.device, step.payload, because: error)
      return
    }
    receipts.release(chain.holds(chain.rows))
    chain.rows = []
  }

  private func forget(_ device: Device, of recipient: User.ID) {
    gone.insert(device.id)
    receipts.forget(device, of: recipient)
  }

  private func bury(_ row: Item, for device: Device.ID?, _ payload: JSONDocument?, because error: String) {
    receipts.bury(row.id, for: device, payload, because: error)
    logger.error(
      "given up",
      metadata: ["type": "\(row.type)", "id": "\(row.notificationID)", "attempts": "\(row.attempts + 1)"])
  }

  private func log(_ error: String, _ row: Item) {
    logger.warning("a notification was not delivered", metadata: ["type": "\(row.type)", "error": "\(error)"])
  }

  private func isOver(_ row: Item) -> Bool {
    row.createdAt < Timestamp.now().adding(seconds: -settings.patience)
  }

  /// Seconds until the next attempt: they double, up to an hour, and no two rows keep step.
  static func delay(after attempts: Int, notBefore seconds: Int?) -> Double {
    let backoff = min(3000, pow(2, Double(attempts))) * Double.random(in: 0.8...1.2)
    return max(backoff, Double(seconds ?? 0) * Double.random(in: 1...1.1))
  }

  // MARK: Writing it down

  /// All that has come together since the last time. Also when the task is cancelled: it would else be sent again.
  private func write(_ group: inout TaskGroup<Happening>) {
    isWriting = true
    let (written, database) = (receipts, database)
    receipts = Receipts()
    group.addTask {
      let writing = Task { try await written.write(in: database) }
      switch await writing.result {
      case .success: return .written(written, failure: nil)
      case .failure(let error): return .written(written, failure: error)
      }
    }
  }

  private func settle(_ written: Receipts, _ failure: (any Error)?) {
    isWriting = false
    guard let failure else {
      writeFailures = 0
      for row in written.settled where held[row.id] == row.lease { held[row.id] = nil }
      for (_, device) in written.gone { gone.remove(device.id) }
      return
    }
    logger.warning("deliveries cannot be noted", metadata: ["error": "\(failure)"])
    // Whoever takes the rows over sends them again.
    if isCutShort {
      receipts = Receipts()
      return
    }
    writeFailures += 1
    let wait: Duration = min(.seconds(2), .milliseconds(50) * (1 << min(writeFailures, 6)))
    writeAt = Instant.now + wait
    var again = written
    again.append(receipts)
    receipts = again
  }
}

extension Push {
  fileprivate init(_ row: NotificationQueue.Item, _ payload: JSONDocument) {
    id = row.notificationID.uuidString.lowercased()
    type = row.type
    subject = row.subject.uuidString.lowercased()
    recipient = row.recipient.description
    self.payload = payload.text
    createdAt = row.createdAt
  }
}
