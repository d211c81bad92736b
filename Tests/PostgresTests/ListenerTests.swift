import TestSupport
import Testing

@testable import Postgres

@Suite
struct ListenerTests {
  @Test func `notifications arrive in order, and a lost connection is reported`() async throws {
    try await withDatabase { database, server in
      var events = database.notifications(on: "news", "Odd \"name\"").makeAsyncIterator()
      #expect(await events.next() == .mayHaveMissed)
      for number in 0..<20 { try await database.execute("SELECT pg_notify('news', \(String(number)))") }
      for number in 0..<20 {
        #expect(await events.next() == .notification(channel: "news", payload: String(number)))
      }
      try await database.execute("SELECT pg_notify('Odd \"name\"', 'x')")
      #expect(await events.next() == .notification(channel: "Odd \"name\"", payload: "x"))

      try await server.terminateBackends("query LIKE 'LISTEN%'")
      #expect(await events.next() == .mayHaveMissed)
      try await database.execute("SELECT pg_notify('news', 'again')")
      #expect(await events.next() == .notification(channel: "news", payload: "again"))
    }
  }

  @Test func `a sequence closes its connection when iteration ends`() async throws {
    try await withDatabase { database, server in
      let task = Task {
        for await _ in database.notifications(on: "news") {}
      }
      try await eventually("it listens") { try await server.backends("query LIKE 'LISTEN%'") == 1 }
      task.cancel()
      try await eventually("it is gone") { try await server.backends("query LIKE 'LISTEN%'") == 0 }
    }
  }

  @Test func `closing the database ends the sequence and its connection`() async throws {
    try await withDatabase { database, server in
      let ended = Collected<Void>()
      Task {
        for await _ in database.notifications(on: "news") {}
        ended.append(())
      }
      try await eventually("it listens") { try await server.backends("query LIKE 'LISTEN%'") == 1 }
      database.close()
      try await eventually("the sequence ends") { ended.count == 1 }
      try await eventually("no session is left") { try await server.backends() == 0 }
    }
  }

  private let hint = ListenerEvent.notification(channel: "hint", payload: "")

  @Test func `a hint sent after another has arrived also arrives, but at least 50 ms later`() async throws {
    try await withDatabase { database, _ in
      var events = database.notifications(on: "hint").makeAsyncIterator()
      #expect(await events.next() == .mayHaveMissed)
      let start = ContinuousClock.now
      for _ in 0..<10 {
        database.notify("hint")
        #expect(await events.next() == hint)
      }
      #expect(ContinuousClock.now - start >= .milliseconds(9 * 50))
    }
  }

  @Test func `any number of hints without pause are sent 50 ms apart, and they delay no transaction`() async throws {
    try await withDatabase(configure: { $0.connections = 1 }) { database, _ in
      var events = database.notifications(on: "hint", "end").makeAsyncIterator()
      #expect(await events.next() == .mayHaveMissed)
      let start = ContinuousClock.now
      var calls = 0
      try await database.transaction { transaction in
        while ContinuousClock.now - start < .milliseconds(500) {
          for _ in 0..<100 { database.notify("hint") }
          calls += 100
          await Task.yield()
        }
        // The hint arrives although the only connection is in use with an open transaction.
        #expect(await events.next(isolation: #isolation) == hint)
        try await transaction.rows("SELECT 1")
      }
      // One at the beginning of each 50 ms, and one for the calls since the last.
      let most = Int((ContinuousClock.now - start) / .milliseconds(50)) + 2
      try await eventually("the last is sent") { database.hints.isEmpty }
      try await database.execute("SELECT pg_notify('end', '')")
      var received = 1
      while await events.next() == hint { received += 1 }
      #expect(received <= most, "of \(calls) calls")
      #expect(calls > most)
    }
  }

  @Test func `a hint arrives after the client's sessions were killed, and a closed database sends none`() async throws {
    try await withDatabase { database, server in
      var events = database.notifications(on: "hint").makeAsyncIterator()
      #expect(await events.next() == .mayHaveMissed)
      for round in 0...3 {
        // A hint is lost if the client sends it before it sees that its session was killed.
        let hinting = Task {
          while true {
            database.notify("hint")
            try await Task.sleep(for: .milliseconds(200))
          }
        }
        #expect(await events.next() == hint)
        hinting.cancel()
        if round < 3 { try await server.terminateBackends("query NOT LIKE 'LISTEN%'") }
      }
      database.close()
      database.notify("hint")
      try await eventually("no hint is pending") { database.hints.isEmpty }
    }
  }
}
