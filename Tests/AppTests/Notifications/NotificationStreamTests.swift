import Foundation
import HTTPServer
import NIOCore
import Postgres
import Synchronization
import Testing
import TestSupport

@testable import App

/// The stream of an inbox: no notification is missing, repeated or late.
@Suite struct NotificationStreamTests {
  /// Requests a stream, and reads nothing.
  private func openStream(
    of phone: Phone, in app: TestApp, receiveBuffer: Int32? = nil
  ) async throws -> RawConnection {
    let connection = try await RawConnection(to: app, receiveBuffer: receiveBuffer)
    try await connection.send(
      "GET /api/v1/notifications/stream HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer \(phone.accessToken)\r\n\r\n")
    return connection
  }

  private func expectWholeInbox(
    of phone: Phone, in events: [EventStream.Event], after number: String = "0",
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let first: Int64 = try #require(Int64(number), sourceLocation: sourceLocation)
    let inbox = try await phone.app.inbox(of: phone).filter { Int64($0.number) ?? 0 > first }
    #expect(events.map(\.id) == inbox.map(\.number), sourceLocation: sourceLocation)
    #expect(events.map { $0.json["id"].string } == inbox.map(\.id), sourceLocation: sourceLocation)
  }

  // MARK: New notifications

  @Test func `a change reaches the recipient's stream within seconds`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      try await EventStream.follow(ana) { stream in
        for name in ["Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"] {
          #expect(stream.response?.header(name.key) == name.value)
        }
        #expect(stream.retry == 2000)
        #expect(stream.events.isEmpty)
        try await ben.sendFriendRequest(to: ana)
        try await app.fanOut()
        let start = ContinuousClock.now
        try await eventually { stream.events.count == 1 }
        #expect(ContinuousClock.now - start < .seconds(5))
        try await expectWholeInbox(of: ana, in: stream.events)
        let event = try #require(stream.events.first)
        #expect(event.name == "notification")
        #expect(event.data.contains("friend-request"))
        #expect(event.data.contains("Ben wants to be friends."))
        // Nothing arrives that is for others.
        try await ben.createEvent("Ben's own")
        let cleo = try await app.signUp("cleo")
        try await cleo.sendFriendRequest(to: ben)
        try await app.fanOut()
        try await EventStream.follow(ben, after: "0") { bens in try await eventually { bens.events.count == 1 } }
        #expect(stream.events.count == 1)
      }
      try await app.takeNotifications()
    }
  }

  @Test func `filing a notification wakes the streams`() async throws {
    // No regular check finds an item within this test. Past a pooler: behind one, a process cannot listen.
    try await TestApp.run(limits: .with { $0.streamCheck = 3600 }, pastPooler: true) { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      try await EventStream.follow(ana) { stream in
        // Until then, the process checks ten times a second.
        try await eventually {
          let listening: Int? = try await app.value(
            """
            SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND query LIKE 'LISTEN%' AND query LIKE '%' || \(InboxItem.channel) || '%'
            """)
          return listening == 1
        }
        // The last check of that kind may find the first items.
        for number in 1...5 {
          try await ben.createEvent("Picnic \(number)", inviting: [ana])
          #expect(try await FanOut.step(in: app.service).notices == 1)
          try await eventually { stream.events.count == number }
        }
        #expect(stream.events.map { $0.json["title"].string } == (1...5).map { "Picnic \($0)" })
      }
      try await app.takeNotifications()
    }
  }

  @Test func `a change in one process reaches the streams of another`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      try await ServiceProcess.run(of: app) { other in
        try await EventStream.follow(ben, at: other) { stream in
          let start = stream.lastID
          for number in 1...3 {
            try await ana.createEvent("Picnic \(number)", inviting: [ben])
            try await app.fanOut()
            try await eventually { stream.events.count == number }
          }
          try await expectWholeInbox(of: ben, in: stream.events, after: start)
        }
      }
      try await app.takeNotifications()
    }
  }

  @Test func `many notifications at once reach several streams completely`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await EventStream.follow(ana) { first in
        try await EventStream.follow(ana) { second in
          // More than a page, and more than may wait for one stream.
          for count in [1, 350, 2] { try await app.fileNotifications(count, for: ana) }
          for stream in [first, second] {
            try await eventually { stream.events.count == 353 }
            try await expectWholeInbox(of: ana, in: stream.events)
          }
        }
      }
    }
  }

  @Test func `an idle stream sends heartbeats and stays open`() async throws {
    try await TestApp.run(
      limits: .with { ($0.streamHeartbeat, $0.connections.idleSeconds, $0.connections.headSeconds) = (0.2, 1, 1) }
    ) { app in
      let ana = try await app.signUp("ana")
      try await EventStream.follow(ana) { stream in
        try await eventually { stream.comments.count { $0 == "ping" } >= 15 }
        #expect(!stream.hasEnded)
        #expect(stream.events.isEmpty)
        try await app.fileNotifications(1, for: ana)
        try await eventually { stream.events.count == 1 }
      }
    }
  }

  // MARK: Changed collections

  @Test func `all phones of a user learn which collections have changed, with their new stamps`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let tablet = try await ana.signInAgain()
      // Before the streams.
      try await ana.editProfile(#"{"bio": "Climbs."}"#)
      try await EventStream.follow(ben) { bens in
        try await EventStream.follow(ana) { first in
          try await EventStream.follow(tablet) { second in
            let start = first.lastID
            try await ben.sendFriendRequest(to: ana)
            let expected: [(EventStream, Phone, App.Collection)] = [
              (first, ana, .friendRequests), (second, ana, .friendRequests), (bens, ben, .sentFriendRequests),
            ]
            for (stream, phone, collection) in expected {
              try await eventually { !stream.changes.isEmpty }
              let path = try #require(Phone.collections[collection])
              let stamp = try await phone.get(path)["timestamp"]
              #expect(stream.changes == [.object([collection.rawValue: stamp])])
              #expect(stream.events.isEmpty)
            }
            // A client resumes after its last notification.
            #expect(first.lastID == start)
            try await app.fanOut()
            for stream in [first, second] {
              try await eventually { stream.events.count == 1 && stream.changes.count == 2 }
              let stamp = try await ana.get("notifications")["timestamp"]
              #expect(stream.changes.last == .object(["notifications": stamp]))
            }
            // Also the user's own changes.
            try await tablet.markRead(#"{"all": true}"#)
            try await eventually { first.changes.count == 3 && second.changes.count == 3 }
            #expect(bens.changes.count == 1)
          }
        }
      }
      try await app.takeNotifications()
    }
  }

  @Test func `a client that reads slowly gets the newest stamps once`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      func stamps() async throws -> Stamps {
        try #require(try await Stamps.read(of: [ana.userID], in: app.service)[ana.userID])
      }
      let first = try await stamps()
      let stream = NotificationStream(of: ana.userID, try ana.session, after: .now(), first)
      guard case .send(let opening) = await stream.next() else { throw Unexpected("no opening") }
      #expect(!String(buffer: opening).contains("changed"))
      for number in 1...3 {
        try await ana.editProfile(#"{"bio": "\#(number)"}"#)
        stream.note(try await stamps())
        try await ana.block(try await app.signUp("other\(number)"))
        stream.note(try await stamps())
      }
      // Items read before the stream began are not news.
      stream.note(first)
      guard case .send(let bytes) = await stream.next() else { throw Unexpected("no stamps") }
      let (profile, blocks) = (
        try #require(try await ana.get("users/me")["timestamp"].string),
        try #require(try await ana.get("blocks")["timestamp"].string)
      )
      let text = String(buffer: bytes)
      #expect(text.components(separatedBy: "event: changed\n").count == 2 && !text.contains("id:"))
      #expect(text.contains(profile) && text.contains(blocks))
      stream.end()
      stream.note(try await stamps())
      guard case .end = await stream.next() else { throw Unexpected("more than the end") }
    }
  }

  @Test func `the stamps of all users with streams are read in one statement`() async throws {
    let log = StatementLog()
    try await TestApp.run(logger: log.logger) { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      try await EventStream.follow(ana) { _ in
        try await EventStream.follow(ana) { _ in
          try await EventStream.follow(ben) { _ in
            log.take()
            var reads: [String] = []
            try await eventually {
              reads += log.take().filter { $0.contains("FROM user_stamps WHERE user_id = ") }
              return reads.count >= 3
            }
            // The first may have begun before the last stream.
            #expect(reads.dropFirst().allSatisfy { $0.contains("unnest") }, "\(reads)")
          }
        }
      }
    }
  }

  // MARK: Resuming

  @Test func `a client that resumes gets what it has missed, in order and once`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.fileNotifications(3, for: ana)
      // Without a number, a stream begins with new notifications. The client learns its place before any arrives.
      let start = try await EventStream.follow(ana) { stream in
        #expect(stream.events.isEmpty)
        return stream.lastID
      }
      let newest = try await app.inbox(of: ana).last?.number
      #expect(start == newest)
      try await app.fileNotifications(250, for: ana)
      let missed = try await EventStream.follow(ana, after: start) { stream in
        try await eventually { stream.events.count == 250 }
        // The stream then continues.
        try await app.fileNotifications(2, for: ana)
        try await eventually { stream.events.count == 252 }
        return stream.events
      }
      try await expectWholeInbox(of: ana, in: missed, after: start)
      // From the middle, and from the beginning.
      for (number, count) in [(missed[99].id, 152), ("0", 255)] {
        let events = try await EventStream.follow(ana, after: number) { stream in
          try await eventually { stream.events.count == count }
          return stream.events
        }
        try await expectWholeInbox(of: ana, in: events, after: number)
      }
    }
  }

  @Test func `the last event id may be in the URL, and the header takes precedence`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.fileNotifications(2, for: ana)
      let numbers = try await app.inbox(of: ana).map(\.number)
      let cases: [(query: String, header: String?, opening: String)] = [
        ("?lastEventId=\(numbers[0])", nil, numbers[0]), ("?lastEventId=0", numbers[0], numbers[0]),
        ("?lastEventId=", nil, numbers[1]), ("", "", numbers[1]),
        // Ahead of the inbox: from before a backup was restored.
        ("", "999999999999999999", numbers[1]),
      ]
      for (query, header, opening) in cases {
        let response = try await ana.send(
          "GET", "notifications/stream\(query)", headers: header.map { [("Last-Event-ID", $0)] } ?? [])
        #expect(response.status == 200)
        #expect(response.body.contains("id: \(opening)\n\n"), "\(query) \(header ?? "none"): \(response.body)")
      }
    }
  }

  @Test func `a malformed last event id is rejected`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for bad in ["x", "-1", "1.5", "1000000000000000000", "1 2", "0x10", "+1"] {
        let response = try await ana.send("GET", "notifications/stream", headers: [("Last-Event-ID", bad)])
        #expect(response.status == 422, "\(bad)")
        #expect(response.badFields == ["Last-Event-ID"], "\(bad)")
        let query = bad.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        let other = try await ana.send("GET", "notifications/stream?lastEventId=\(query)")
        #expect(other.status == 422, "\(bad)")
        #expect(other.badFields == ["lastEventId"], "\(bad)")
      }
    }
  }

  @Test func `a resumed stream leaves out users hidden in the meantime`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let cleo = try await app.signUp("cleo")
      for sender in [ben, cleo] { try await sender.sendFriendRequest(to: ana) }
      try await app.fanOut()
      try await ana.block(ben)
      try await EventStream.follow(ana, after: "0") { stream in
        try await eventually { !stream.events.isEmpty }
        try await app.fileNotifications(1, for: ana)
        try await eventually { stream.events.count == 2 }
        #expect(stream.events[0].data.contains(cleo.id))
        #expect(!stream.events.contains { $0.data.contains(ben.id) })
      }
      try await app.takeNotifications()
    }
  }

  // MARK: Races

  @Test func `a notification that commits late is not skipped`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let cleo = try await app.signUp("cleo")
      try await app.befriend(ana, cleo)
      let (dev, finn) = try await app.friends("dev", "finn")
      var events: [String] = []
      for (host, guest) in [(ben, ana), (cleo, ana), (dev, finn)] {
        events.append(try #require(try await host.createEvent(inviting: [guest])["id"].string))
      }
      try await app.fanOut()
      // A step that files the title 'Late' has done everything except its commit, which waits.
      try await app.database.execute(
        """
        CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF NEW.payload->>'title' = 'Late' THEN
            PERFORM set_config('lock_timeout', '0', true), pg_advisory_xact_lock(7);
          END IF;
          RETURN NULL;
        END
        $$
        """)
      try await app.database.execute(
        """
        CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON notifications DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION wait()
        """)
      let holder = try Database(Database.Configuration(url: app.databaseURL))
      defer { holder.close() }
      let (bens, cleos, devs) = (events[0], events[1], events[2])
      try await EventStream.follow(ana) { stream in
        let start = stream.lastID
        try await EventStream.follow(finn) { others in
          let late = try await holder.transaction { transaction -> Task<Bool, any Error> in
            try await transaction.rows("SELECT pg_advisory_xact_lock(7)")
            try await ben.edit(bens, #"{"title": "Late"}"#)
            let late = Task { try await FanOut.step(in: app.service).notices > 0 }
            try await app.waitForLocks(1)
            // By SQL, because a change would wait for the same row of stamps.
            let behind = Notice.eventUpdated(try #require(Event.ID(cleos)), "Behind", [], by: cleo.userID)
            let queueing = NotificationQueue.insert(behind, forUsersIn: "SELECT \(ana.userID)")
            try await app.database.execute(queueing)
            try await dev.edit(devs, #"{"title": "Elsewhere"}"#)
            // Other inboxes are not delayed meanwhile. By then, this one has also been checked.
            #expect(try await FanOut.step(in: app.service).notices > 0)
            try await eventually { others.events.count == 1 }
            #expect(stream.events.isEmpty)
            return late
          }
          #expect(try await late.value)
        }
        try await app.fanOut()
        try await eventually { stream.events.count == 2 }
        #expect(stream.events[0].data.contains("Late"))
        #expect(stream.events[1].data.contains("Behind"))
        try await expectWholeInbox(of: ana, in: stream.events, after: start)
      }
      try await app.takeNotifications()
    }
  }

  @Test func `a client that reconnects again and again during changes gets everything once`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let hosts = try await app.crowd(6, around: ana)
      var events: [(host: Phone, id: String)] = []
      for host in hosts {
        events.append((host, try #require(try await host.createEvent(inviting: [ana])["id"].string)))
      }
      try await app.fanOut()
      let start = try await EventStream.follow(ana) { $0.lastID }
      let edits = 25
      let writing = Task { [events] in
        try await withThrowingTaskGroup(of: Void.self) { group in
          for (host, id) in events {
            group.addTask {
              for number in 1...edits { try await host.edit(id, #"{"title": "Title \#(number)"}"#) }
            }
          }
          try await group.waitForAll()
        }
      }
      var random = SeededRandom(seed: 7)
      var received: [EventStream.Event] = []
      var last = start
      var connections = 0
      let deadline = ContinuousClock.now + .seconds(120)
      try await app.withFanOut {
        while received.count < hosts.count * edits, ContinuousClock.now < deadline {
          let pause = Duration.milliseconds(Int.random(in: 0...200, using: &random))
          let (more, place) = try await EventStream.follow(ana, after: last) { stream in
            try await Task.sleep(for: pause)
            return stream.progress
          }
          received += more
          last = place
          connections += 1
        }
      }
      try await writing.value
      #expect(connections > 1)
      #expect(Set(received.map(\.id)).count == received.count)
      try await expectWholeInbox(of: ana, in: received, after: start)
      try await app.takeNotifications()
    }
  }

  // MARK: Slow readers

  @Test func `a client that reads nothing is cut off, and resumes where it was`() async throws {
    try await TestApp.run(limits: .with { $0.connections.idleSeconds = 1 }) { app in
      let ana = try await app.signUp("ana")
      let connection = try await openStream(of: ana, in: app, receiveBuffer: 4096)
      try await connection.waitForSome()
      // More than all buffers in between can hold.
      try await app.fileNotifications(4000, for: ana)
      // Only reading would keep the connection open.
      try await Task.sleep(for: .seconds(4))
      let taken = EventStream.events(in: try await connection.rest(within: 15))
      #expect(taken.count < 4000)
      let rest = try await EventStream.follow(ana, after: taken.last?.id ?? "0") { stream in
        try await eventually(within: .seconds(120)) { stream.events.count + taken.count >= 4000 }
        return stream.events
      }
      try await expectWholeInbox(of: ana, in: taken + rest)
    }
  }

  @Test func `clients that read nothing do not delay others`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      var connections: [RawConnection] = []
      for _ in 0..<5 {
        let connection = try await openStream(of: ana, in: app, receiveBuffer: 4096)
        try await connection.waitForSome()
        connections.append(connection)
      }
      try await app.fileNotifications(3000, for: ana)
      try await EventStream.follow(ben) { stream in
        for count in 1...5 {
          try await app.fileNotifications(1, for: ben)
          try await eventually { stream.events.count == count }
        }
      }
      #expect(try await app.send("GET", "/health/ready").status == 200)
      connections.removeAll()
    }
  }

  // MARK: Ending

  @Test func `a stream outlives its token and ends only with its own session`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let tablet = try await ana.signInAgain()
      // Valid for a few more seconds.
      let token = try await app.dependencies.accessTokens.sign(
        user: ana.userID, session: try ana.session, now: Timestamp.now().adding(seconds: -885))
      // Not refreshed for a long time: no longer among the sessions whose tokens could still be valid.
      try await app.database.execute("UPDATE sessions SET rotated_at = now() - interval '2 hours'")
      try await EventStream.follow(tablet) { other in
        try await EventStream.follow(ana, token: token) { stream in
          try await eventually(within: .seconds(60)) {
            try await app.send("GET", "users/me", token: token).problem == "token-expired"
          }
          try await app.fileNotifications(1, for: ana)
          try await eventually { stream.events.count == 1 && other.events.count == 1 }
          let end = try await tablet.send("DELETE", "auth/sessions/\(try ana.session)")
          #expect(end.status == 204)
          let start = ContinuousClock.now
          try await eventually { stream.hasEnded }
          #expect(ContinuousClock.now - start < .seconds(5))
          try await app.fileNotifications(1, for: ana)
          try await eventually { other.events.count == 2 }
          #expect(stream.events.count == 1)
          #expect(!other.hasEnded)
        }
      }
    }
  }

  @Test func `logging out and deleting the account end streams in every process`() async throws {
    try await TestApp.run { app in
      try await ServiceProcess.run(of: app) { other in
        for way in ["logging out", "deleting"] {
          let phone = try await app.signUp(way == "deleting" ? "ana" : "ben")
          try await EventStream.follow(phone, at: other) { stream in
            #expect(!stream.hasEnded)
            if way == "deleting" {
              try await phone.deleteAccount()
            } else {
              #expect(try await phone.send("POST", "auth/logout").status == 204)
            }
            try await eventually { stream.hasEnded }
          }
          try await eventually {
            try await EventStream.follow(phone, at: other) { $0.response?.problem == "session-ended" }
          }
        }
      }
    }
  }

  @Test func `a user's sixth stream closes the first, whose client must wait before it reconnects`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      var connections: [RawConnection] = []
      try await EventStream.follow(ana) { first in
        try await EventStream.follow(ana) { second in
          for _ in 0..<3 {
            let connection = try await openStream(of: ana, in: app)
            #expect(try await connection.response().status == 200)
            connections.append(connection)
          }
          #expect(!first.hasEnded)
          try await EventStream.follow(ana) { sixth in
            try await eventually { first.hasEnded }
            #expect(first.retry == 60_000)
            try await app.fileNotifications(1, for: ana)
            for stream in [second, sixth] {
              try await eventually { stream.events.count == 1 }
              #expect(!stream.hasEnded)
            }
          }
        }
      }
      // Connections close when they are released.
      #expect(connections.count == 3)
    }
  }

  @Test func `a process limits its streams, and has room again when one ends`() async throws {
    try await TestApp.run(limits: .with { ($0.streams, $0.streamHeartbeat) = (2, 0.1) }) { app in
      var phones: [Phone] = []
      for name in ["ana", "ben", "cleo"] { phones.append(try await app.signUp(name)) }
      try await EventStream.follow(phones[0]) { _ in
        try await EventStream.follow(phones[1]) { _ in
          try await EventStream.follow(phones[2]) { stream in
            #expect(stream.response?.status == 503)
            #expect(stream.response?.problem == "too-many-streams")
            #expect(stream.response?.header("Retry-After") == "10")
          }
          // A HEAD request opens no stream and takes no place.
          #expect(try await phones[2].send("HEAD", "notifications/stream").status == 200)
        }
        try await eventually {
          try await EventStream.follow(phones[2]) { $0.response?.status == 200 }
        }
      }
    }
  }

  @Test func `a shutdown ends streams at once`() async throws {
    let stopped = Mutex(ContinuousClock.now)
    let connections = Mutex<[RawConnection]>([])
    try await TestApp.run(isShared: false) { app in
      let ana = try await app.signUp("ana")
      for _ in 0..<3 {
        let connection = try await openStream(of: ana, in: app)
        #expect(try await connection.response().status == 200)
        connections.withLock { $0.append(connection) }
      }
      stopped.withLock { $0 = .now }
    }
    // The time includes dropping the database. A connection that is cut off gets eight seconds.
    #expect(ContinuousClock.now - stopped.withLock { $0 } < .seconds(6))
    for connection in connections.withLock({ $0 }) {
      #expect(try await connection.rest().hasSuffix("0\r\n\r\n"))
    }
  }
}
