import Postgres
import TestSupport
import Testing

@testable import App

/// Writes wait for their turn before they take one of the pool's connections.
@Suite struct WriteTurnTests {
  /// Strangers may know an event's id from an earlier invitation.
  @Test func `strangers do not wait in an event's line`() async throws {
    try await TestApp.run { app in
      let (ana, cleo) = (try await app.signUp("ana"), try await app.signUp("cleo"))
      let guests = try await app.crowd(4, around: ana)
      let id = try await ana.createEvent(inviting: guests)["id"].string ?? ""
      let event = try #require(Event.ID(id))
      let (queue, key) = (app.dependencies.writeQueue, KeyedQueue.Key.event(event))
      let calls: [(method: String, path: String, body: String?)] = [
        ("PATCH", "events/\(id)", #"{"title": "Mine"}"#), ("DELETE", "events/\(id)", nil),
        ("PUT", "events/\(id)/invitations/me", #"{"status": "going"}"#),
        ("POST", "events/\(id)/invitations", #"{"userIds": ["\#(ana.id)"]}"#),
        ("DELETE", "events/\(id)/invitations/\(guests[0].id)", nil),
      ]
      let holder = try Database(Database.Configuration(url: app.databaseURL))
      defer { holder.close() }
      try await app.withConnections(16) {
        let answering = try await holder.transaction { transaction in
          try await transaction.rows("SELECT 1 FROM events WHERE id = \(event) FOR UPDATE")
          let tasks = guests.map { guest in Task { try await guest.answer("going", to: id) } }
          try await eventually { queue.waiting(at: key) == guests.count - 1 }
          for (method, path, body) in calls {
            let response = try await cleo.send(method, path, body)
            #expect(
              response.status == 404 && response.problem == "event-not-found", "\(method) \(path): \(response.body)")
          }
          // Its host waits with the guests.
          let editing = Task { try await ana.edit(id, #"{"title": "Dinner"}"#) }
          try await eventually { queue.waiting(at: key) == guests.count }
          return tasks + [editing]
        }
        for task in answering { _ = try await task.value }
      }
      #expect(queue.isIdle)
      // The same without a line.
      for (method, path, body) in calls {
        let response = try await cleo.send(method, path, body)
        #expect(response.status == 404 && response.problem == "event-not-found", "\(method) \(path): \(response.body)")
      }
      let seen = try await ana.get("events/\(id)")
      #expect(seen["counts"]["going"].int == guests.count && seen["title"].string == "Dinner")
      try await app.takeNotifications()
    }
  }

  /// More requests than there are connections write to one event, which another transaction has locked.
  @Test func `one popular event does not stop writes to other events`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let guests = try await app.crowd(40, around: ana)
      let id = try await ana.createEvent(inviting: guests)["id"].string ?? ""
      let event = try #require(Event.ID(id))
      let blocker = try Database(Database.Configuration(url: app.databaseURL))
      defer { blocker.close() }
      let gate = AsyncStream.makeStream(of: Void.self)
      let locked = AsyncStream.makeStream(of: Void.self)
      async let holding: Void = blocker.transaction { transaction in
        try await transaction.rows("SELECT 1 FROM events WHERE id = \(event) FOR UPDATE")
        locked.continuation.finish()
        for await _ in gate.stream {}
      }
      for await _ in locked.stream {}
      try await app.withConnections(64) {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for guest in guests { group.addTask { _ = try await guest.answer("going", to: id) } }
          try await eventually { app.dependencies.writeQueue.waiting(at: .event(event)) == guests.count - 1 }
          for number in 0..<5 {
            let other = try await ben.createEvent("Other \(number)")["id"].string ?? ""
            try await ben.edit(other, #"{"title": "Another"}"#)
          }
          #expect(app.dependencies.writeQueue.waiting(at: .event(event)) == guests.count - 1)
          gate.continuation.finish()
          try await group.waitForAll()
        }
      }
      try await holding
      #expect(app.dependencies.writeQueue.isIdle)
      #expect(try await ana.get("events/\(id)")["counts"]["going"].int == guests.count)
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  /// The writes to one user that 40 requests send at once.
  enum Rush: CaseIterable {
    case edits, blocks, friendRequests, marks, unfriendings

    fileprivate func send(_ guest: Phone, _ ana: Phone, _ number: Int) async throws -> Int {
      switch self {
      case .edits: try await ana.send("PATCH", "users/me", #"{"bio": "Number \#(number)"}"#).status
      case .blocks: try await guest.send("PUT", "blocks/\(ana.id)").status
      case .friendRequests: try await guest.send("POST", "friend-requests", #"{"receiverId": "\#(ana.id)"}"#).status
      case .marks: try await ana.send("POST", "notifications/read", #"{"all": true}"#).status
      case .unfriendings: try await guest.send("DELETE", "friends/\(ana.id)").status
      }
    }
  }

  /// More requests than there are connections write to one user, whose row is locked.
  @Test(arguments: Rush.allCases)
  func `one locked user does not stop writes to other users`(rush: Rush) async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let guests = try await app.crowd(40, around: rush == .friendRequests ? ben : ana)
      let queue = app.dependencies.writeQueue
      // All but the first of a user's own writes wait before they enter that user's line.
      let key = [.edits, .marks].contains(rush) ? KeyedQueue.Key.actor(ana.userID) : .user(ana.userID)
      func waiting() -> Int? { queue.waiting(at: key) }
      let elsewhere = try Database(Database.Configuration(url: app.databaseURL))
      defer { elsewhere.close() }
      try await app.withConnections(64) {
        let writes = try await elsewhere.transaction { transaction in
          try await transaction.rows("SELECT 1 FROM users WHERE id = \(ana.userID) FOR UPDATE")
          try await transaction.rows("SELECT 1 FROM user_stamps WHERE user_id = \(ana.userID) FOR UPDATE")
          let writes = guests.enumerated().map { number, guest in
            Task { try await rush.send(guest, ana, number) }
          }
          try await eventually { waiting() == guests.count - 1 }
          for number in 0..<3 { try await ben.createEvent("Other \(number)") }
          #expect(waiting() == guests.count - 1)
          return writes
        }
        for write in writes { #expect([200, 201, 204].contains(try await write.value)) }
      }
      #expect(queue.isIdle)
      try await app.takeNotifications()
    }
  }

  /// Turns are taken in id order, and the user who sends the flood comes last.
  @Test func `one user's flood of writes takes at most one place in another user's line`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      #expect(ana.userID < ben.userID)
      let queue = app.dependencies.writeQueue
      let elsewhere = try Database(Database.Configuration(url: app.databaseURL))
      defer { elsewhere.close() }
      try await app.withConnections(64) {
        let writes = try await elsewhere.transaction { transaction in
          try await transaction.rows("SELECT 1 FROM users WHERE id = \(ben.userID) FOR UPDATE")
          let edits = (0..<20).map { number in
            Task { try await ben.send("PATCH", "users/me", #"{"bio": "Number \#(number)"}"#).status }
          }
          try await eventually { queue.waiting(at: .actor(ben.userID)) == edits.count - 1 }
          let unfriendings = (0..<20).map { _ in Task { try await ben.send("DELETE", "friends/\(ana.id)").status } }
          try await eventually { queue.waiting(at: .actor(ben.userID)) == edits.count + unfriendings.count - 1 }
          #expect(queue.waiting(at: .user(ana.userID)) == nil)
          try await ana.editProfile(#"{"bio": "Here"}"#)
          return edits + unfriendings
        }
        for write in writes { #expect([200, 204].contains(try await write.value)) }
      }
      #expect(queue.isIdle)
      try await app.takeNotifications()
    }
  }

  @Test func `a write that does not get its lock in time is refused as busy, and changes nothing`() async throws {
    try await TestApp.run(
      lockWait: .milliseconds(150),
      // Behind a pooler, the database must have the limit, because the session does not.
      prepare: { url in
        try await ScriptConnection.run(url) { connection in
          try connection.script(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET lock_timeout = 150', current_database()); END $$")
        }
      }
    ) { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let elsewhere = try Database(Database.Configuration(url: app.databaseURL))
      defer { elsewhere.close() }
      try await elsewhere.transaction { transaction in
        try await transaction.rows("SELECT 1 FROM users WHERE id = \(ana.userID) FOR UPDATE")
        for (method, path, body) in [("PATCH", "users/me", #"{"bio": "New"}"#), ("PUT", "blocks/\(ben.id)", nil)] {
          let response = try await ana.send(method, path, body)
          #expect(response.status == 503 && response.problem == "busy", "\(path): \(response.body)")
          #expect(response.header("Retry-After") == "2")
        }
      }
      #expect(try await ana.get("users/me")["bio"] == .null)
      #expect(try await ana.get("blocks")["items"].array.isEmpty)
      try await ana.block(ben)
    }
  }
}
