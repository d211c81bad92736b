import Logging
import Postgres
import ServiceLifecycle

/// Fans out notices, delivers notifications and mails, revokes Apple grants, sends event reminders, and does
/// housekeeping. Any number of workers can share one database.
public struct NotificationWorker: Service {
  private let database: Database
  private let sources: [Dispatcher.Source]
  private let concurrency: Int
  private let canListen: Bool
  private let hearing = Hearing()
  private let housekeeping: Housekeeping
  private let logger: Logger

  /// The longest time for which fan-out lets notices gather. The inbox must follow a change within 100 ms.
  private static let longestRest = Duration.milliseconds(30)
  private static let reminderInterval = Duration.milliseconds(500)
  private static let mergeInterval = Duration.milliseconds(500)
  private static let newsInterval = Duration.milliseconds(500)
  private static let housekeepingInterval = Duration.seconds(30)

  /// - Parameter concurrency: the maximum number of sends in flight on each channel.
  public init(
    _ dependencies: Dependencies, sender: any PushSender, mailer: any MailSender, concurrency: Int
  ) {
    database = dependencies.database
    sources = [
      Delivery.source(MeasuredSender(sender, in: dependencies.metrics), in: database),
      OutgoingMail.source(
        MeasuredMailer(mailer, in: dependencies.metrics), keys: dependencies.refreshTokenKeys,
        gate: dependencies.mailGate, publicURL: dependencies.publicURL, in: database),
      AppleRevocation.source(dependencies.appleGrants, in: database),
    ]
    self.concurrency = max(1, concurrency)
    canListen = !dependencies.isBehindPooler && dependencies.engine == .postgres
    housekeeping = Housekeeping(
      zones: dependencies.zones, eventRetention: dependencies.eventRetention, logger: dependencies.logger)
    logger = dependencies.logger
  }

  /// Runs until the process is asked to stop. Then it finishes the sends in flight and gives back the rest.
  public func run() async throws {
    let (dispatcher, fanOut) = (makeDispatcher(sources), WakeUp())
    let listening = Task { if canListen { await listen(waking: dispatcher, fanOut) } }
    defer { listening.cancel() }
    async let fannedOut: Void = self.fanOut(wokenBy: fanOut, waking: dispatcher)
    async let reminded: Void = remind(waking: fanOut)
    async let merged: Void = merge(waking: fanOut)
    async let told: Void = tell(waking: fanOut)
    async let house: Void = work("housekeeping cannot run", pausing: Self.housekeepingInterval) {
      await housekeeping.run(in: database)
      return false
    }
    try await dispatcher.run(.untilStopped)
    await fannedOut
    await reminded
    await merged
    await told
    await house
  }

  /// Runs until nothing is due.
  public func runOnce() async throws {
    while try await remindOfNext() {}
    while try await Visitor.mergeMarked(in: database, logger: logger) > 0 {}
    while try await tellNext() {}
    try await FanOut.drain(database)
    try await makeDispatcher(sources).run(.untilNothingIsDue)
    await housekeeping.run(in: database)
  }

  /// Fans out all notices, claims one batch of a queue, and sends it.
  ///
  /// - Returns: the number of claimed runs.
  @discardableResult
  func step(_ queue: LeaseQueue = Delivery.queue) async throws -> Int {
    try await FanOut.drain(database)
    return try await makeDispatcher(sources.filter { $0.queue.table == queue.table }).run(.oneRound)
  }

  private func makeDispatcher(_ sources: [Dispatcher.Source]) -> Dispatcher {
    Dispatcher(sources, concurrency: concurrency, database: database, hearing: hearing, logger: logger)
  }

  // MARK: Loops

  private func fanOut(wokenBy wakeUp: WakeUp, waking dispatcher: Dispatcher) async {
    var polling = Polling(alternates: true)
    // While more waits than one window has, the polls between full ones read the newest notices and the next window in
    // turns, so that no notice has to wait until all in front of it are gone.
    var place: Int64 = 0
    var readsWindow = false
    while !Task.isShuttingDownGracefully, !Task.isCancelled {
      let isFull = polling.begin(at: .now)
      do {
        let start = ContinuousClock.now
        let scope: FanOut.Scope = isFull ? .oldest : readsWindow ? .after(place) : .recent
        let progress = try await FanOut.step(scope, in: database)
        if isFull { place = max(place, progress.end ?? 0) } else if readsWindow { place = progress.end ?? 0 }
        if !isFull { readsWindow = !readsWindow && place > 0 }
        let found = progress.notices > 0
        if found { dispatcher.wake() }
        let end = ContinuousClock.now
        // Under load, a step that starts immediately finds few notices, and costs almost as much as one with many.
        let rest = found && !progress.isAtLimit ? min(end - start, Self.longestRest) : .zero
        polling.end(
          at: end, found: found, mayHaveMore: progress.isAtLimit, wasFull: isFull, rest: rest,
          hears: hearing.isCertain(at: end))
      } catch {
        if Task.isCancelled { return }
        polling.fail(at: .now)
        logger.warning("notices cannot be fanned out", metadata: ["error": "\(error)"])
      }
      while polling.next > .now, !Task.isShuttingDownGracefully, !Task.isCancelled {
        if await wakeUp.wait(until: polling.next) { polling.wake(at: .now) }
      }
    }
  }

  private func remind(waking fanOut: WakeUp) async {
    await work("reminders cannot be queued", pausing: Self.reminderInterval) {
      let found = try await remindOfNext()
      if found { fanOut.wake() }
      return found
    }
  }

  private func merge(waking fanOut: WakeUp) async {
    await work("visitors cannot be merged", pausing: Self.mergeInterval) {
      let found = try await Visitor.mergeMarked(in: database, logger: logger) > 0
      if found { fanOut.wake() }
      return found
    }
  }

  private func tell(waking fanOut: WakeUp) async {
    await work("visitors' answers cannot be announced", pausing: Self.newsInterval) {
      let found = try await tellNext()
      if found { fanOut.wake() }
      return found
    }
  }

  private func tellNext() async throws -> Bool {
    try await database.change { try await VisitorNews.tellNext(in: $0) }
  }

  /// Sends the reminders of one event.
  ///
  /// - Returns: whether there was an event to remind of.
  private func remindOfNext() async throws -> Bool {
    try await database.change { try await Event.remindOfNext(in: $0) }
  }

  /// Repeats `body` until the process is asked to stop. Pauses only when there was nothing to do.
  ///
  /// - Parameters:
  ///   - failure: the message that is logged if `body` throws.
  ///   - body: returns whether there was something to do.
  private func work(_ failure: Logger.Message, pausing idle: Duration, _ body: () async throws -> Bool) async {
    let pausing = WakeUp()
    var failures = 0
    while !Task.isShuttingDownGracefully, !Task.isCancelled {
      var didWork = false
      do {
        didWork = try await body()
        failures = 0
      } catch {
        if Task.isCancelled { return }
        failures += 1
        logger.warning(failure, metadata: ["error": "\(error)", "failures": "\(failures)"])
      }
      if didWork { continue }
      let usual = hearing.isCertain(at: .now) ? max(idle, Polling.heardPause) : idle
      let pause = failures == 0 ? usual : min(.seconds(5), .milliseconds(100) * (1 << min(failures, 6)))
      _ = await pausing.wait(until: .now + pause)
    }
  }

  /// Wakes the loops when something is queued. Nothing depends on it: it only shortens the pause between two polls. While
  /// announcements surely arrive, the loops poll once a second.
  private func listen(waking dispatcher: Dispatcher, _ fanOut: WakeUp) async {
    let speaking = Task { await hearing.speak(on: NotificationQueue.channel, in: database) }
    defer { speaking.cancel() }
    for await event in database.notifications(on: NotificationQueue.channel) where hearing.note(event, at: .now) {
      fanOut.wake()
      dispatcher.wake()
    }
  }
}
