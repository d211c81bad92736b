import Foundation
import Logging
import Postgres
import ServiceLifecycle

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
  /// While the queue is empty it is looked at this often: a change is on its way within that time of its commit.
  private static let pause = Duration.milliseconds(50)
  private static let housekeepingInterval = Duration.seconds(30)

  /// - Parameter concurrency: notifications being sent at once, and mails.
  public init(_ dependencies: Dependencies, sender: any PushSender, mailer: any MailSender, concurrency: Int) {
    database = dependencies.database
    keys = dependencies.refreshTokenKeys
    self.sender = sender
    self.mailer = mailer
    appleGrants = dependencies.appleGrants
    self.concurrency = max(1, concurrency)
    logger = dependencies.logger
  }

  /// Works until the process is asked to stop; then finishes what is under way and gives back the rest.
  public func run() async throws {
    async let mails: Void = work { try await step(.mails) > 0 }
    var nextHousekeeping = ContinuousClock.now
    await work {
      let didWork = try await step(.pushes) > 0
      if ContinuousClock.now >= nextHousekeeping {
        nextHousekeeping = .now + Self.housekeepingInterval
        try await keepHouse()
      }
      return didWork
    }
    await mails
  }

  /// Repeats `body` until the process is asked to stop: at once while there is something to do.
  ///
  /// - Parameter body: returns whether there was.
  private func work(_ body: () async throws -> Bool) async {
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
      let pause = failures == 0 ? Self.pause : min(.seconds(5), .milliseconds(100) * (1 << min(failures, 6)))
      // Ends early, without an error of ours, when the process is asked to stop.
      try? await cancelWhenGracefulShutdown { try await Task.sleep(for: pause) }
    }
  }

  /// Works until nothing is due.
  public func runOnce() async throws {
    while try await step(.pushes) > 0 {}
    while try await step(.mails) > 0 {}
    try await keepHouse()
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
    let renewal = Task { try await renew(items.map(\.id), lease: lease) }
    defer { renewal.cancel() }
    var waiting = items[...]
    var delivered: [Int64] = []
    try await withThrowingTaskGroup(of: (NotificationQueue.Item, String?).self) { group in
      for item in waiting.prefix(concurrency) { group.addTask { (item, await deliver(item)) } }
      waiting = waiting.dropFirst(concurrency)
      while let (item, failure) = try await group.next() {
        if let failure {
          try await NotificationQueue.retry(item, because: failure, lease: lease, in: database)
        } else {
          delivered.append(item.id)
        }
        if !Task.isShuttingDownGracefully, let next = waiting.popFirst() {
          group.addTask { (next, await deliver(next)) }
        }
      }
    }
    if !delivered.isEmpty { try await NotificationQueue.finish(delivered, lease: lease, in: database) }
    if !waiting.isEmpty { try await NotificationQueue.release(waiting.map(\.id), lease: lease, in: database) }
    return items.count
  }

  /// Holds a claim until it is cancelled. When the database is away the claim is lost, and others take over.
  private func renew(_ ids: [Int64], lease: UUID) async throws {
    while true {
      try await Task.sleep(for: .milliseconds(Self.leaseSeconds * 500))
      try await NotificationQueue.renew(ids, lease: lease, seconds: Self.leaseSeconds, in: database)
    }
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
        guard let appleGrants else { throw AppleGrants.Failure(description: "Apple's key is not configured") }
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

  private func keepHouse() async throws {
    while try await archive() > 0 {}
    while try await database.change({ try await MailToken.purge(atMost: 500, in: $0) }) > 0 {}
    while try await Throttle.purge(atMost: 1000, in: database) > 0 {}
    while try await Session.purge(atMost: 1000, in: database) > 0 {}
    while try await User.freeNames(atMost: 1000, in: database) > 0 {}
  }

  private func archive() async throws -> Int {
    try await database.change { try await Event.archive(endedBefore: .now(), atMost: 100, in: $0) }
  }
}
