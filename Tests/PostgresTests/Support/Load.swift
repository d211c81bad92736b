import Foundation
import TestSupport
import Testing

@testable import Postgres

/// Calls clients without pause while something breaks, and records the outcomes. A read carries a nonce that its row
/// must return. A write inserts a nonce.
final class Load: Sendable {
  static let table = "CREATE TABLE notes (nonce bigint PRIMARY KEY)"

  private struct State {
    var nonce = 0
    var isOver = false
    /// For each task, the number of calls that succeeded, and of all calls that ended.
    var succeeded: [Int]
    var ended: [Int]
    var acknowledged: Set<Int> = []
    /// Writes that failed with the guarantee that they had no effect.
    var withoutEffect: Set<Int> = []
    var failures: [String: Int] = [:]
    var longest = Duration.zero
  }

  private let databases: [Database]
  private let isCancelling: Bool
  private let state: Lock<State>
  private let rescue = Lock<Task<Void, any Error>?>(nil)

  private init(_ databases: [Database], tasks: Int, isCancelling: Bool) {
    self.databases = databases
    self.isCancelling = isCancelling
    state = Lock(State(succeeded: Array(repeating: 0, count: tasks), ended: Array(repeating: 0, count: tasks)))
  }

  /// Runs tasks that call while `body` runs. Half of them read and half of them write.
  ///
  /// - Parameters:
  ///   - databases: clients of the same database, each for its share of the tasks.
  ///   - isCancelling: whether to cancel a third of the calls at random moments.
  static func run(
    on databases: [Database], tasks count: Int = 20, isCancelling: Bool = false, _ body: (Load) async throws -> Void
  ) async throws -> Load {
    let load = Load(databases, tasks: count, isCancelling: isCancelling)
    defer { load.rescue.withLock { $0?.cancel() } }
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      for task in 0..<count { tasks.addTask { try await load.call(from: task) } }
      defer { load.end() }
      try await body(load)
    }
    return load
  }

  /// Begins no more calls. Fails calls that hang, so that the test ends.
  private func end() {
    state.withLock { $0.isOver = true }
    rescue.withLock {
      $0 = Task { [databases] in
        try await Task.sleep(for: .seconds(30))
        Issue.record("a call hangs")
        for database in databases { database.close() }
      }
    }
  }

  // MARK: Calling

  private func call(from task: Int) async throws {
    let database = databases[task / 2 % databases.count]
    var random = SeededRandom(seed: UInt64(task))
    while let nonce = state.withLock({ state -> Int? in
      state.nonce += 1
      return state.isOver ? nil : state.nonce
    }) {
      let isRead = task % 2 == 0
      let form = Int.random(in: 0..<3, using: &random)
      let isCancelled = isCancelling && Int.random(in: 0..<3, using: &random) == 0
      let delay = Duration.microseconds(Int.random(in: 0...8000, using: &random))
      let start = ContinuousClock.now
      let call = Task { try await isRead ? read(nonce, form, database) : write(nonce, form, database) }
      if isCancelled {
        try await Task.sleep(for: delay)
        call.cancel()
      }
      let result = await call.result
      note(result, of: nonce, isRead: isRead, isCancelled: isCancelled, task, after: .now - start)
      // A failed task must not spin while there is no server.
      if case .failure = result { try await Task.sleep(for: .milliseconds(2)) }
    }
  }

  private func read(_ nonce: Int, _ form: Int, _ database: Database) async throws {
    switch form {
    case 0:
      #expect(try await database.value("SELECT \(nonce)") == nonce)
    case 1:
      // A result that arrives in several chunks.
      let text = "[\(nonce)]"
      let row = try #require(try await database.first("SELECT \(nonce) AS nonce, repeat(\(text), 100) AS text"))
      #expect(try row["nonce"] == nonce)
      #expect(try row["text"] == String(repeating: text, count: 100))
    default:
      let responses = try await database.pipeline("SELECT \(nonce)", "SELECT \(-nonce) FROM generate_series(1, 3)")
      #expect(try responses.map { try $0.map { try $0[0] as Int } } == [[nonce], [-nonce, -nonce, -nonce]])
    }
  }

  private func write(_ nonce: Int, _ form: Int, _ database: Database) async throws {
    switch form {
    case 0:
      let rows = try await database.execute("INSERT INTO notes VALUES (\(nonce)) RETURNING nonce")
      #expect(try rows.map { try $0["nonce"] as Int } == [nonce])
    case 1:
      try await database.transaction { transaction in
        try await transaction.rows("INSERT INTO notes VALUES (\(nonce))")
        #expect(try await transaction.value("SELECT \(nonce)") == nonce)
        #expect(try await transaction.value("SELECT count(*) FROM notes WHERE nonce = \(nonce)") == 1)
      }
    default:
      let responses = try await database.batch(
        "INSERT INTO notes VALUES (\(nonce)) RETURNING nonce", "SELECT \(-nonce)")
      #expect(try responses.map { try $0.map { try $0[0] as Int } } == [[nonce], [-nonce]])
    }
  }

  private func note(
    _ result: Result<Void, any Error>, of nonce: Int, isRead: Bool, isCancelled: Bool, _ task: Int,
    after duration: Duration
  ) {
    var failure: String?
    var isWithoutEffect = false
    do {
      try result.get()
    } catch let error as PostgresError {
      failure = error.sqlState ?? "\(error.kind)"
      isWithoutEffect = !error.mayHaveRun
      #expect(error.isUnavailable, "\(error)")
    } catch {
      failure = "\(error)"
      // COMMIT is never cancelled.
      isWithoutEffect = true
      #expect(isCancelled && error is CancellationError, "\(error)")
    }
    state.withLock { state in
      state.longest = max(state.longest, duration)
      state.ended[task] += 1
      if let failure {
        state.failures[failure, default: 0] += 1
        if !isRead, isWithoutEffect { state.withoutEffect.insert(nonce) }
      } else {
        state.succeeded[task] += 1
        if !isRead { state.acknowledged.insert(nonce) }
      }
    }
  }

  // MARK: Observing

  /// The number of calls that succeeded or failed.
  var ended: Int { state.withLock { $0.ended.reduce(0, +) } }
  var acknowledged: Int { state.withLock { $0.acknowledged.count } }
  var summary: String {
    state.withLock { state in
      let failures = state.failures.sorted { $0.value > $1.value }.map { "\($0.value) \($0.key)" }
      return "\(state.succeeded.reduce(0, +)) calls succeeded, \(failures.joined(separator: ", ")); longest "
        + "\(state.longest)"
    }
  }

  /// Returns when every task has begun and ended a call, with any outcome.
  func turn(within limit: Duration, sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let before = state.withLock { $0.ended }
    try await eventually(within: limit, "every call ends", sourceLocation: sourceLocation) {
      state.withLock { state in zip(state.ended, before).allSatisfy { $0 >= $1 + 2 } }
    }
  }

  /// Returns when every task has begun a call that succeeded.
  func recovery(within limit: Duration, sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let before = state.withLock { $0.succeeded }
    try await eventually(within: limit, "every task succeeds", sourceLocation: sourceLocation) {
      state.withLock { state in zip(state.succeeded, before).allSatisfy { $0 >= $1 + 2 } }
    }
  }

  /// Compares the outcomes with the server's rows: it has all acknowledged writes, and none that failed without effect.
  ///
  /// - Parameter limit: the longest time that a call may take.
  func check(on server: Server, within limit: Duration, sourceLocation: SourceLocation = #_sourceLocation) async throws
  {
    let present = Set(try await server.value("SELECT coalesce(array_agg(nonce), '{}') FROM notes", as: [Int].self))
    state.withLock { state in
      let lost = state.acknowledged.subtracting(present)
      #expect(lost.isEmpty, "acknowledged writes are missing", sourceLocation: sourceLocation)
      let unwanted = state.withoutEffect.intersection(present)
      #expect(unwanted.isEmpty, "writes that failed without effect are present", sourceLocation: sourceLocation)
      #expect(state.longest < limit, "a call exceeded its deadlines", sourceLocation: sourceLocation)
    }
  }
}

extension Database.Configuration {
  /// The sum of the deadlines of one call: for a connection, for two statements and for COMMIT, with a margin for a
  /// busy machine.
  var maximumCallTime: Duration { acquireTimeout + statementTimeout * 3 + .seconds(4) }
}
