import Foundation
import Logging
import Postgres
import ServiceLifecycle
import Synchronization

/// Delivers the queue, archives what is over and forgets what has expired. Any number of them work on one database.
public struct NotificationWorker: Service {
  private let database: Database
  private let keys: SigningKeys
  private let sender: any PushSender
  private let mailer: any MailSender
  private let appleGrants: AppleGrants?
  private let concurrency: Int
  private let logger: Logger

  private static let batch = 100
  /// Seconds for which a claim holds unless it is renewed: so soon is taken over what a worker held that died.
  private static let leaseSeconds = 5
  /// So often that a claim outlives some failures to renew it.
  private static let renewalInterval = Duration.seconds(1)
  /// Seconds after which a mail, or a revocation, that still fails is given up: a week.
  private static let patience = 7 * 86_400
  /// While the queue is empty it is looked at this often: a change is on its way within that time of its commit.
  private static let pause = Duration.milliseconds(50)
  private static let housekeepingInterval = Duration.seconds(30)

  /// - Parameter concurrency: notifications being sent at once, and mails.
  public init(_ dependencies: Dependencies, sender: any PushSender, mailer: any MailSender, concurrency: Int) {
    database = dependencies.database
    keys = dependencies.refreshTokenKeys
    self.sender = MeasuredSender(sender, in: dependencies.metrics)
    self.mailer = MeasuredMailer(mailer, in: dependencies.metrics)
    appleGrants = dependencies.appleGrants
    self.concurrency = max(1, concurrency)
    logger = dependencies.logger
  }

  /// Works until the process is asked to stop; then finishes what is under way and gives back the rest.
  public func run() async throws {
    async let mails: Void = work { try await step(.mails) > 0 }
    async let house: Void = work(pausing: Self.housekeepingInterval) {
      await keepHouse()
      return false
    }
    await work { try await step(.pushes) > 0 }
    await mails
    await house
  }

  /// Repeats `body` until the process is asked to stop: at once while there is something to do, and else after a pause.
  ///
  /// - Parameter body: returns whether there was.
  private func work(pausing idle: Duration = Self.pause, _ body: () async throws -> Bool) async {
    var failures = 0
    while !Task.isShuttingDownGracefully, !Task.isCancelled {
      var didWork = false
      do {
        didWork = try await body()
        failures = 0
      } catch is CancellationError {
        break
      } catch {
        failures += 1
        logger.warning("the queue cannot be worked on", metadata: ["error": "\(error)", "failures": "\(failures)"])
      }
      if didWork { continue }
      let pause = failures == 0 ? idle : min(.seconds(5), .milliseconds(100) * (1 << min(failures, 6)))
      // Ends early, without an error of ours, when the process is asked to stop.
      try? await cancelWhenGracefulShutdown { try await Task.sleep(for: pause) }
    }
  }

  /// Works until nothing is due.
  public func runOnce() async throws {
    while try await step(.pushes) > 0 {}
    while try await step(.mails) > 0 {}
    await keepHouse()
  }

  /// Claims one batch and delivers it.
  ///
  /// - Returns: how many rows were claimed.
  func step(_ kind: NotificationQueue.Kind = .pushes) async throws -> Int {
    let lease = UUID()
    // A mail may take its time: none that was sent waits for another's turn to be forgotten.
    let items = try await NotificationQueue.claim(
      kind, atMost: kind == .mails ? concurrency : Self.batch, lease: lease, seconds: Self.leaseSeconds, in: database)
    guard !items.isEmpty else { return 0 }
    let claim = Claim(of: items)
    let renewal = Task { await renew(claim, lease: lease) }
    defer { renewal.cancel() }
    var waiting = items[...]
    var delivered: [Int64] = []
    try await withThrowingTaskGroup(of: (NotificationQueue.Item, String?).self) { group in
      for item in waiting.prefix(concurrency) { group.addTask { (item, await deliver(item)) } }
      waiting = waiting.dropFirst(concurrency)
      while let (item, failure) = try await group.next() {
        if let failure, !isGivenUp(item, kind) {
          try await NotificationQueue.retry(item, because: failure, lease: lease, in: database)
        } else {
          delivered.append(item.id)
        }
        // What another worker has taken over by now is not begun here as well.
        waiting.removeAll { !claim.holds($0.id) }
        if !Task.isShuttingDownGracefully, let next = waiting.popFirst() {
          group.addTask { (next, await deliver(next)) }
        }
      }
    }
    if !delivered.isEmpty { try await NotificationQueue.finish(delivered, lease: lease, in: database) }
    if !waiting.isEmpty { try await NotificationQueue.release(waiting.map(\.id), lease: lease, in: database) }
    return items.count
  }

  /// Holds a claim until it is cancelled. While the database is away it may be lost, and others take over.
  private func renew(_ claim: Claim, lease: UUID) async {
    while !Task.isCancelled, !claim.ids.isEmpty {
      do {
        try await Task.sleep(for: Self.renewalInterval)
        claim.keep(
          try await NotificationQueue.renew(claim.ids, lease: lease, seconds: Self.leaseSeconds, in: database))
      } catch {
        if Task.isCancelled { return }
        logger.warning("a claim could not be renewed", metadata: ["error": "\(error)"])
      }
    }
  }

  /// Whether what failed is tried no more. Notifications are not given up here.
  private func isGivenUp(_ item: NotificationQueue.Item, _ kind: NotificationQueue.Kind) -> Bool {
    guard kind == .mails, item.createdAt < Timestamp.now().adding(seconds: -Self.patience) else { return false }
    logger.error(
      "given up",
      metadata: ["type": "\(item.type)", "id": "\(item.notificationID)", "attempts": "\(item.attempts + 1)"])
    return true
  }

  /// - Returns: why it failed, if it did.
  private func deliver(_ item: NotificationQueue.Item) async -> String? {
    do {
      switch item.type {
      case let type where type.hasPrefix(Mail.prefix):
        // Without a use any more, it is as good as delivered.
        guard let mail = try await OutgoingMail.compose(item, keys: keys, in: database) else { return nil }
        try await mailer.send(mail)
      case AppleGrant.revocation:
        guard let appleGrants else { throw DeliveryFailure(description: "Apple's key is not configured") }
        try await appleGrants.revoke(item.payload)
      default:
        try await sender.send(
          Push(
            id: item.notificationID.uuidString.lowercased(), type: item.type, recipient: item.recipient.description,
            payload: item.payload.text))
      }
      return nil
    } catch {
      logger.warning("a notification was not delivered", metadata: ["type": "\(item.type)", "error": "\(error)"])
      return "\(error)"
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

/// Which of the rows that a worker has claimed are still its own.
private final class Claim: Sendable {
  private let held: Mutex<Set<Int64>>

  init(of items: [NotificationQueue.Item]) {
    held = Mutex(Set(items.map(\.id)))
  }

  var ids: [Int64] { held.withLock { $0.sorted() } }

  func holds(_ id: Int64) -> Bool {
    held.withLock { $0.contains(id) }
  }

  /// Gives up the others.
  func keep(_ ids: [Int64]) {
    held.withLock { $0 = Set(ids) }
  }
}
