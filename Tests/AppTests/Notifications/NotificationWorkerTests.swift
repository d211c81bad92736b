import Foundation
import Logging
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import App

@Suite struct NotificationWorkerTests {
  @Test func `a due notification is delivered and removed from the queue`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      try await ben.addDevice("bens")
      let request = try await ana.sendFriendRequest(to: ben)
      let recorder = Recorder()
      try await app.worker(recorder).runOnce()
      let received = try #require(recorder.received.first)
      #expect(recorder.received.count == 1)
      #expect(received.token == "bens")
      #expect(received.push.type == "friend-request")
      #expect(received.push.recipient == ben.id)
      #expect(received.push.subject == Notice.subject(ana.userID).uuidString.lowercased())
      #expect(received.payload["requestId"].string == request)
      #expect(received.payload["message"].string == "Ana wants to be friends.")
      // The id is the same in the inbox.
      let filed: UUID? = try await app.value("SELECT id FROM notifications")
      #expect(filed?.uuidString.lowercased() == received.push.id)
      #expect(try await app.takeNotifications().isEmpty)
    }
  }

  @Test func `rows of a killed worker are taken over without counting a failed attempt`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(5)
      try await app.enqueue(rounds: 0..<2, to: 5)
      let dead = UUID()
      try await app.database.batch(Heartbeat.writing(of: dead))
      let leased = try await Delivery.queue.claim(.all, atMost: 3, for: dead, lease: UUID(), in: app.service)
      #expect(leased.runs.map(\.count) == [2, 2, 2])
      let recorder = Recorder { push, _ in
        let attempts: Int? = try await app.value("SELECT max(attempts) FROM deliveries")
        #expect(attempts == 0)
      }
      let running = Task { try await app.worker(recorder).run() }
      try await eventually(within: .seconds(20)) { try await app.countQueue() == 0 }
      #expect(recorder.received.count == 10)
      for reader in 1...5 { #expect(recorder.rounds("\(reader)-1") == [0, 1]) }
      running.cancel()
      try await running.value
    }
  }

  @Test func `of the rows that were in flight at two deaths of workers, one at a time is sent, and delays no other`()
    async throws
  {
    try await TestApp.run { app in
      try await app.gatherReaders(4)
      try await app.enqueue(rounds: 0..<1, to: 2)
      try await app.database.execute("UPDATE deliveries SET deaths = 2")
      let recorder = Recorder()
      recorder.hold()
      let running = Task { try await app.worker(recorder).run() }
      try await eventually { recorder.begun == 1 }
      try await app.enqueue(rounds: 1..<2, to: 4)
      // The rows behind the suspects wait for them; the other suspect, for the first.
      try await eventually { recorder.begun == 3 }
      recorder.letGo()
      try await eventually { recorder.received.count == 6 }
      for reader in 1...2 { #expect(recorder.rounds("\(reader)-1") == [0, 1]) }
      for reader in 3...4 { #expect(recorder.rounds("\(reader)-1") == [1]) }
      running.cancel()
      try await running.value
      #expect(try await app.countQueue() == 0)
    }
  }

  @Test func `one death of a worker makes no row wait for another`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(3)
      try await app.enqueue(rounds: 0..<1, to: 3)
      try await app.database.execute("UPDATE deliveries SET deaths = 1")
      let reached = Mutex(0)
      let recorder = Recorder { _, _ in
        reached.withLock { $0 += 1 }
        // Each ends only after all have begun.
        try await eventually { reached.withLock { $0 == 3 } }
      }
      try await app.worker(recorder).runOnce()
      #expect(recorder.received.count == 3)
      #expect(try await app.countQueue() == 0)
    }
  }

  @Test func `a failed change leaves neither rows nor stamps`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let stale = try await ana.stale {
        await #expect(throws: AppError.notYours) {
          try await app.service.change { change in
            _ = try await FriendRequest.send(from: ana.userID, to: ben.userID, in: change)
            throw AppError.notYours
          }
        }
      }
      #expect(stale == [])
      #expect(try await app.value("SELECT count(*) FROM friend_requests") == 0)
    }
  }
}
