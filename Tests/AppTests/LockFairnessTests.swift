import Postgres
import Synchronization
import TestSupport
import Testing

@testable import App

/// Locks on a user's row are granted in the order in which they are requested.
@Suite struct LockFairnessTests {
  /// A transaction of another process that locks users for share until it ends.
  private final class ShareLocker: Sendable {
    private let gate = AsyncStream.makeStream(of: Void.self)
    private let state = Mutex(false)
    private let task = Mutex<Task<Void, any Error>?>(nil)

    var isHolding: Bool { state.withLock { $0 } }

    init(_ users: [User.ID], in database: Database) {
      let stream = gate.stream
      task.withLock {
        $0 = Task { [self] in
          try await database.change { change in
            _ = try await change.lock(users: users, for: .share)
            state.withLock { $0 = true }
            for await _ in stream {}
          }
        }
      }
    }

    func end() async throws {
      gate.continuation.finish()
      try await task.withLock { $0 }?.value
    }
  }

  /// - Parameter others: how many other users each transaction of the flood also locks.
  @Test(arguments: [0, 100])
  func `a block waits for the share locks before it, and not for later ones`(others: Int) async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let elsewhere = try Database(Database.Configuration(url: app.databaseURL))
      defer { elsewhere.close() }
      let users = [ana.userID] + (0..<others).map { _ in User.ID.new() }
      var holder = ShareLocker(users, in: elsewhere)
      try await eventually { holder.isHolding }
      let block = Task { try await ana.send("PUT", "blocks/\(ben.id)").status }
      try await app.waitForLocks(1)
      var overtaken = 0
      // Each begins before the previous one ends, so that the row always has a share lock.
      for _ in 0..<10 {
        let next = ShareLocker(users, in: elsewhere)
        try await eventually {
          if next.isHolding { return true }
          let waiting: Int? = try await app.value(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
          return waiting == 2
        }
        overtaken += next.isHolding ? 1 : 0
        try await holder.end()
        holder = next
        if overtaken == 0 { break }
      }
      #expect(overtaken == 0)
      if overtaken > 0 { try await holder.end() }
      #expect(try await block.value == 204)
      if overtaken == 0 { try await holder.end() }
    }
  }

  @Test func `repeating a friend request waits for no lock`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let request = try await ben.sendFriendRequest(to: ana)
      try await app.takeNotifications()
      let elsewhere = try Database(Database.Configuration(url: app.databaseURL))
      defer { elsewhere.close() }
      try await elsewhere.transaction { transaction in
        try await transaction.rows("SELECT 1 FROM users WHERE id = \(ana.userID) FOR UPDATE")
        #expect(try await ben.sendFriendRequest(to: ana, expecting: 200) == request)
      }
      try await ana.block(ben)
      #expect(try await ben.send("POST", "friend-requests", #"{"receiverId": "\#(ana.id)"}"#).status == 404)
    }
  }
}
