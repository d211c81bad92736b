import Postgres
import Testing

/// Concurrent reads by key.
@Suite(.timeLimit(.minutes(15)))
struct DataLoaderTests {
  /// Loads the doubles of even numbers; odd numbers have no value. Collects the keys of each statement.
  private func doubles(
    in database: Database, _ statements: Collected<[Int]> = Collected(),
    _ before: @escaping @Sendable ([Int]) async throws -> Void = { _ in }
  ) -> DataLoader<Int, Int> {
    DataLoader(in: database) { keys, database in
      statements.append(keys)
      try await before(keys)
      let rows = try await database.rows("SELECT n, 2 * n FROM unnest(\(keys)::bigint[]) AS n WHERE n % 2 = 0")
      return try Dictionary(rows.map { (try $0[0], try $0[1]) }) { first, _ in first }
    }
  }

  @Test func `every caller gets its own value, in fewer statements than calls`() async throws {
    try await withDatabase { database, _ in
      let statements = Collected<[Int]>()
      let doubles = doubles(in: database, statements)
      let wrong = try await withThrowingTaskGroup(of: Int.self) { tasks in
        for task in 0..<200 {
          tasks.addTask {
            var wrong = 0
            for number in 0..<50 {
              let key = task + number
              if try await doubles.value(for: key) != (key.isMultiple(of: 2) ? 2 * key : nil) { wrong += 1 }
            }
            return wrong
          }
        }
        return try await tasks.reduce(0, +)
      }
      #expect(wrong == 0)
      #expect(statements.all.joined().count == 10_000)
      #expect(statements.count < 5_000)
    }
  }

  @Test func `a caller sees everything that was committed before its call`() async throws {
    let setUp =
      "CREATE TABLE counters (id bigint PRIMARY KEY, n bigint); INSERT INTO counters SELECT generate_series(1, 32), 0"
    try await withDatabase(setUp) { database, _ in
      let statements = Collected<[Int]>()
      let counters = DataLoader(in: database) { (ids: [Int], database) in
        statements.append(ids)
        let rows = try await database.rows("SELECT id, n FROM counters WHERE id = ANY(\(ids)::bigint[])")
        return try Dictionary(uniqueKeysWithValues: rows.map { (try $0[0], try $0[1]) }) as [Int: Int]
      }
      let stale = try await withThrowingTaskGroup(of: Int.self) { tasks in
        for id in 1...32 {
          tasks.addTask {
            var stale = 0
            for n in 1...50 {
              try await database.execute("UPDATE counters SET n = \(n) WHERE id = \(id)")
              if try await counters.value(for: id) != n { stale += 1 }
            }
            return stale
          }
        }
        return try await tasks.reduce(0, +)
      }
      #expect(stale == 0)
      #expect(statements.count < 1_600)
    }
  }

  @Test func `a failure reaches all callers of its statement and no others`() async throws {
    try await withDatabase { database, _ in
      var shared = 0
      for _ in 1...20 {
        let (statements, refused) = (Collected<[Int]>(), Collected<Int>())
        let doubles = doubles(in: database, statements) { keys in
          if keys.contains(10) { throw Refused() }
        }
        try await withThrowingTaskGroup(of: Void.self) { tasks in
          for key in 1...200 {
            tasks.addTask {
              do {
                _ = try await doubles.value(for: key)
              } catch is Refused {
                refused.append(key)
              }
            }
          }
          try await tasks.waitForAll()
        }
        #expect(Set(refused.all) == Set(try #require(statements.all.first { $0.contains(10) })))
        if refused.count > 1 { shared += 1 }
        #expect(try await doubles.value(for: 14) == 28)
      }
      #expect(shared > 0)
    }
  }

  @Test
  func `a few slow statements delay no other callers, and a cancelled caller stops waiting at once`() async throws {
    try await withDatabase(configure: { $0.maximumWaiting = 6 }) { database, _ in
      let (statements, opened, refused) = (Collected<[Int]>(), Collected<Bool>(), Collected<Int>())
      let doubles = doubles(in: database, statements) { _ in
        try await eventually(within: .seconds(60), "it may continue") { opened.count > 0 }
      }
      func ask(_ key: Int) -> Task<Int?, any Error> {
        Task {
          do {
            return try await doubles.value(for: key)
          } catch let error as PostgresError where error.kind == .overloaded {
            refused.append(key)
            return 2 * key
          }
        }
      }
      var tasks: [Task<Int?, any Error>] = []
      for number in 1...6 {
        tasks.append(ask(2 * number))
        try await eventually("\(number) statements are in flight") { statements.count == number }
        try await Task.sleep(for: .milliseconds(40))
      }
      let impatient = Task { try await doubles.value(for: 100) }
      impatient.cancel()
      await #expect(throws: CancellationError.self) { _ = try await impatient.value }
      for number in 7...14 { tasks.append(ask(2 * number)) }
      try await eventually("six callers wait, not counting the one that gave up") { refused.count == 2 }
      #expect(statements.count == 6)
      opened.append(true)
      for (index, task) in tasks.enumerated() { #expect(try await task.value == 4 * (index + 1)) }
      #expect(statements.count == 7)
    }
  }

  private struct Refused: Error {}
}
