import Postgres
import TestSupport
import Testing

@Suite("Listening")
struct ListenerTests {
  @Test("What is sent is heard, in order, and a lost connection is told of")
  func hearing() async throws {
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

  @Test("A sequence that nobody reads any more gives its connection back")
  func ending() async throws {
    try await withDatabase { database, server in
      let task = Task {
        for await _ in database.notifications(on: "news") {}
      }
      try await eventually("it listens") { try await server.backends("query LIKE 'LISTEN%'") == 1 }
      task.cancel()
      try await eventually("it is gone") { try await server.backends("query LIKE 'LISTEN%'") == 0 }
    }
  }

  @Test("Closing the database ends the sequence, and its connection")
  func closing() async throws {
    try await withDatabase { database, server in
      let ended = Collected<Void>()
      Task {
        for await _ in database.notifications(on: "news") {}
        ended.append(())
      }
      try await eventually("it listens") { try await server.backends("query LIKE 'LISTEN%'") == 1 }
      database.close()
      try await eventually("the sequence ends") { ended.count == 1 }
      try await eventually("nobody is connected") { try await server.backends() == 0 }
    }
  }
}
