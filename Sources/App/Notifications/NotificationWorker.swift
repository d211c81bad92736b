import Foundation
import Logging
import Postgres
import ServiceLifecycle

/// Delivers the queue and archives what is over. Any number of them work on one database.
public struct NotificationWorker: Service {
  private let database: Database
  private let sender: any PushSender
  private let appleGrants: AppleGrants?
  private let concurrency: Int
  private let logger: Logger

  private static let batch = 100
  /// Seconds for which a claim holds. A batch that takes longer may be taken over, and then arrive twice.
  private static let leaseSeconds = 5
  /// While the queue is empty it is looked at this often: a change is on its way within that time of its commit.
  private static let pause = Duration.milliseconds(50)
  private static let archivingInterval = Duration.seconds(30)

  /// - Parameter concurrency: notifications being sent at once.
  public init(database: Database, sender: any PushSender, concurrency: Int, logger: Logger) {
    self.init(database: database, sender: sender, appleGrants: nil, concurrency: concurrency, logger: logger)
  }

  /// With all that other work in the queue needs.
  public init(_ dependencies: Dependencies, sender: any PushSender, concurrency: Int) {
    self.init(
      database: dependencies.database, sender: sender, appleGrants: dependencies.appleGrants, concurrency: concurrency,
      logger: dependencies.logger)
  }

  private init(
    database: Database, sender: any PushSender, appleGrants: AppleGrants?, concurrency: Int, logger: Logger
  ) {
    self.database = database
    self.sender = sender
    self.appleGrants = appleGrants
    self.concurrency = max(1, concurrency)
    self.logger = logger
  }

  /// Works until the process is asked to stop; then finishes what is under way and gives back the rest.
  public func run() async throws {
    var nextArchiving = ContinuousClock.now
    var failures = 0
    while !Task.isShuttingDownGracefully, !Task.isCancelled {
      var didWork = false
      do {
        didWork = try await step() > 0
        if ContinuousClock.now >= nextArchiving {
          nextArchiving = .now + Self.archivingInterval
          while try await archive() > 0 {}
        }
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
    while try await step() > 0 {}
    while try await archive() > 0 {}
  }

  /// Claims one batch and delivers it.
  ///
  /// - Returns: how many rows were claimed.
  public func step() async throws -> Int {
    let lease = UUID()
    let items = try await NotificationQueue.claim(
      atMost: Self.batch, lease: lease, seconds: Self.leaseSeconds, in: database)
    guard !items.isEmpty else { return 0 }
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

  /// - Returns: why it failed, if it did.
  private func deliver(_ item: NotificationQueue.Item) async -> String? {
    do {
      switch item.type {
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

  private func archive() async throws -> Int {
    try await database.change { try await Event.archive(endedBefore: .now(), atMost: 100, in: $0) }
  }
}
