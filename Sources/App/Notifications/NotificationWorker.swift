import Foundation
import Logging
import Postgres
import ServiceLifecycle
import Synchronization

/// Delivers the queue, reminds of events, archives what is over and forgets what has expired. Any number of them work on
/// one database.
public struct NotificationWorker: Service {
  private let database: Database
  private let keys: SigningKeys
  private let sender: any PushSender
  private let unheard: (any PushSender)?
  private let mailer: any MailSender
  private let appleGrants: AppleGrants?
  private let concurrency: Int
  private let canListen: Bool
  private let logger: Logger

  /// Chains of notifications held at once, and when to claim more of them.
  private static let chains = 500
  private static let fewChains = 250
  /// Seconds after which a push that still fails is given up: a day. Nobody wants to be told so late.
  private static let patienceForPushes = 86_400
  /// The same for mails, and for what Apple is to revoke: a week.
  private static let patienceForMails = 7 * 86_400
  private static let reminderInterval = Duration.milliseconds(500)
  private static let housekeepingInterval = Duration.seconds(30)

  /// - Parameters:
  ///   - unheard: is handed what is for people without any device, which is else done with when it is due.
  ///   - concurrency: notifications being sent at once, and mails.
  public init(
    _ dependencies: Dependencies, sender: any PushSender, unheard: (any PushSender)? = nil, mailer: any MailSender,
    concurrency: Int
  ) {
    database = dependencies.database
    keys = dependencies.refreshTokenKeys
    self.sender = MeasuredSender(sender, in: dependencies.metrics)
    self.unheard = unheard
    self.mailer = MeasuredMailer(mailer, in: dependencies.metrics)
    appleGrants = dependencies.appleGrants
    self.concurrency = max(1, concurrency)
    canListen = dependencies.canListen
    logger = dependencies.logger
  }

  /// Works until the process is asked to stop; then finishes what is under way and gives back the rest.
  public func run() async throws {
    let (pushes, mails) = (delivery(of: .pushes), delivery(of: .mails))
    let listening = Task { if canListen { await listen(waking: [pushes, mails]) } }
    defer { listening.cancel() }
    async let mailed = mails.run(.untilStopped)
    async let reminded: Void = work(pausing: Self.reminderInterval) { try await remind() }
    async let house: Void = work(pausing: Self.housekeepingInterval) {
      await keepHouse()
      return false
    }
    _ = try await pushes.run(.untilStopped)
    _ = try await mailed
    await reminded
    await house
  }

  /// Repeats `body` until the process is asked to stop: at once while there is something to do, and else after a pause.
  ///
  /// - Parameter body: returns whether there was.
  private func work(pausing idle: Duration, _ body: () async throws -> Bool) async {
    var failures = 0
    while !Task.isShuttingDownGracefully, !Task.isCancelled {
      var didWork = false
      do {
        didWork = try await body()
        failures = 0
      } catch {
        if Task.isCancelled { break }
        failures += 1
        logger.warning("the events cannot be worked on", metadata: ["error": "\(error)", "failures": "\(failures)"])
      }
      if didWork { continue }
      let pause = failures == 0 ? idle : min(.seconds(5), .milliseconds(100) * (1 << min(failures, 6)))
      // Ends early, without an error of ours, when the process is asked to stop.
      try? await cancelWhenGracefulShutdown { try await Task.sleep(for: pause) }
    }
  }

  /// Works until nothing is due.
  public func runOnce() async throws {
    while try await remind() {}
    try await delivery(of: .pushes).run(.untilNothingIsDue)
    try await delivery(of: .mails).run(.untilNothingIsDue)
    await keepHouse()
  }

  /// Claims one batch and delivers it.
  ///
  /// - Returns: how many chains of rows were claimed.
  func step(_ kind: NotificationQueue.Kind = .pushes) async throws -> Int {
    try await delivery(of: kind).run(.oneBatch)
  }

  /// Reminds the guests of one event.
  ///
  /// - Returns: whether there was one.
  private func remind() async throws -> Bool {
    try await database.change { try await Event.remindOfNext(in: $0) }
  }

  // MARK: Delivering

  private func delivery(of kind: NotificationQueue.Kind) -> Delivery {
    let settings =
      switch kind {
      case .pushes:
        Delivery.Settings(
          kind: kind, concurrency: concurrency, chains: Self.chains, fewChains: Self.fewChains,
          patience: Self.patienceForPushes, tellsOfUnheard: unheard != nil)
      case .mails:
        // A mail may take its time: none is held that is not being sent.
        Delivery.Settings(
          kind: kind, concurrency: concurrency, chains: concurrency, fewChains: concurrency,
          patience: Self.patienceForMails, tellsOfUnheard: false)
      }
    return Delivery(settings, database: database, logger: logger, deliver: deliver)
  }

  @Sendable private func deliver(_ parcel: Delivery.Parcel) async throws {
    switch parcel {
    case .push(let push, let device): try await sender.send(push, to: device)
    case .unheard(let push): try await unheard?.send(push, to: .nobodys)
    case .row(let row) where row.type == AppleGrant.revocation:
      guard let appleGrants else { throw DeliveryFailure(description: "Apple's key is not configured") }
      try await appleGrants.revoke(row.payload)
    case .row(let row):
      // Without a use any more, it is as good as delivered.
      guard let mail = try await OutgoingMail.compose(row, keys: keys, in: database) else { return }
      try await mailer.send(mail)
    }
  }

  /// Hears when something was put into the queue. Nothing depends on it: it saves some of the pause between two looks.
  private func listen(waking deliveries: [Delivery]) async {
    for await _ in database.notifications(on: NotificationQueue.channel) {
      for delivery in deliveries { delivery.wake() }
    }
  }

  // MARK: Housekeeping

  private struct Chore: Sendable {
    let name: String
    /// Does a part of it, and returns how many rows there were to it.
    let batch: @Sendable (Database) async throws -> Int
  }

  private static let chores = [
    Chore(name: "archiving events") { database in
      try await database.change { try await Event.archive(endedBefore: .now(), atMost: 100, in: $0) }
    },
    Chore(name: "forgetting mailed tokens") { database in
      try await database.change { try await MailToken.purge(atMost: 500, in: $0) }
    },
    Chore(name: "forgetting failed attempts") { try await Throttle.purge(atMost: 1000, in: $0) },
    Chore(name: "forgetting sessions") { try await Session.purge(atMost: 1000, in: $0) },
    Chore(name: "giving back usernames") { try await User.freeNames(atMost: 1000, in: $0) },
    Chore(name: "forgetting devices") { try await Device.purge(atMost: 1000, in: $0) },
    Chore(name: "forgetting dead letters") { try await DeadLetter.purge(olderThan: 30, atMost: 1000, in: $0) },
    Chore(name: "emptying inboxes") { database in
      try await database.change { try await Notice.purge(atMost: 1000, in: $0) }
    },
  ]

  /// Archives and forgets, a batch of each kind in turn, until nothing is left or the process is asked to stop. A kind
  /// that fails waits for the next time, and none of the others for it.
  func keepHouse() async {
    var chores = Self.chores
    while !chores.isEmpty {
      var unfinished: [Chore] = []
      for chore in chores {
        if Task.isShuttingDownGracefully || Task.isCancelled { return }
        do {
          if try await chore.batch(database) > 0 { unfinished.append(chore) }
        } catch {
          if Task.isCancelled { return }
          logger.warning("a chore failed", metadata: ["chore": "\(chore.name)", "error": "\(error)"])
        }
      }
      chores = unfinished
    }
  }
}
