import Foundation
import Postgres
import TestSupport
import Testing

/// Connections over TCP and TLS.
@Suite(.timeLimit(.minutes(15)))
struct TLSTests {
  private func database(_ url: String, statementTimeout: Duration = .seconds(10)) throws -> Database {
    var configuration = Database.Configuration(url: url)
    configuration.applicationName = Server.applicationName
    configuration.sharedConnections = 1
    configuration.connectTimeout = .seconds(30)
    configuration.acquireTimeout = .seconds(30)
    configuration.statementTimeout = statementTimeout
    return try Database(configuration)
  }

  @Test func `only a server with a certificate of the given authority is trusted`() async throws {
    try await TLSServer.run { server in
      let database = try database(server.url)
      defer { database.close() }
      #expect(try await database.value("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") == true)
      let stranger = try self.database(server.strangerURL)
      defer { stranger.close() }
      let error = try await postgresError { try await stranger.rows("SELECT 1") }
      #expect(error.kind == .cannotConnect)
      #expect(error.message.contains("certificate"))
    }
  }

  @Test func `results of any size arrive at once, although OpenSSL holds parts of them`() async throws {
    try await TLSServer.run { server in
      // Data that is forgotten in a buffer would arrive only with the next result.
      let database = try database(server.url, statementTimeout: .seconds(5))
      defer { database.close() }
      for size in stride(from: 1, to: 50_000, by: 331) {
        let text: String? = try await database.value("SELECT repeat('x', \(Int32(size)))")
        #expect(text?.utf8.count == size)
      }
      try await withThrowingTaskGroup(of: Void.self) { tasks in
        for number in 0..<40 {
          tasks.addTask {
            for round in 0..<20 {
              let size = (number * 7919 + round * 104_729) % 60_000
              let row = try #require(
                try await database.first("SELECT \(number), repeat('y', \(Int32(size))), \(Data(count: size))"))
              #expect(try row[0] == number)
              #expect(try (row[1] as String).utf8.count == size)
              #expect(try (row[2] as Data).count == size)
            }
          }
        }
        try await tasks.waitForAll()
      }
      let large = Data(repeating: 7, count: 5_000_000)
      #expect(try await database.value("SELECT \(large)") == large)
    }
  }

  @Test func `transactions, slow reads, notifications and COPY work`() async throws {
    try await TLSServer.run { server in
      let database = try database(server.url)
      defer { database.close() }
      try await database.execute("CREATE TABLE notes (n bigint, data bytea)")
      var events = database.notifications(on: "notes").makeAsyncIterator()
      #expect(await events.next() == .mayHaveMissed)
      try await database.transaction { transaction in
        for number in 0..<300 {
          try transaction.write("INSERT INTO notes VALUES (\(number), \(Data(count: number * 40)))")
          try transaction.write("SELECT pg_notify('notes', \(String(number)))")
        }
      }
      // All of them arrive with one commit, in many records of TLS.
      for number in 0..<300 {
        #expect(await events.next() == .notification(channel: "notes", payload: String(number)))
      }
      let count = try await ScriptConnection.run(server.url) { connection in
        try connection.copy(into: "notes", columns: ["n", "data"]) { rows in
          for number in 300..<600 { try rows.append(number, Data(count: number * 40)) }
        }
      }
      #expect(count == 300)
      let sizes = try await database.slow.rows("SELECT n, data FROM notes ORDER BY n").map { row in
        (try row["data"] as Data).count
      }
      #expect(sizes == (0..<600).map { $0 * 40 })
    }
  }

  @Test func `a statement can be cancelled, and the connection is used again`() async throws {
    try await TLSServer.run { server in
      let database = try database(server.url, statementTimeout: .seconds(60))
      defer { database.close() }
      let plain = Server(url: server.plainURL)
      func process() async throws -> Int { try await database.execute("SELECT pg_backend_pid()")[0][0] }
      var isUsedAgain = false
      // On a busy machine, the request to cancel may take more than its 2 seconds. The connection is then replaced.
      for _ in 1...3 where !isUsedAgain {
        let before = try await process()
        let sleeper = Task { try await database.execute("SELECT pg_sleep(50)") }
        try await eventually("it sleeps") { try await plain.backends("wait_event = 'PgSleep'") == 1 }
        sleeper.cancel()
        await #expect(throws: CancellationError.self) { _ = try await sleeper.value }
        try await eventually("it no longer sleeps") { try await plain.backends("wait_event = 'PgSleep'") == 0 }
        let end = ContinuousClock.now + .seconds(5)
        repeat { isUsedAgain = try await process() == before } while !isUsedAgain && .now < end
      }
      #expect(isUsedAgain)
    }
  }
}
