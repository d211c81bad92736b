import Dispatch
import Foundation
import Postgres
import TestSupport
import Testing

/// Tasks on the thread that receives a database's results.
@Suite(.timeLimit(.minutes(15)))
struct ExecutorTests {
  /// The caller's thread.
  private func thread() -> UInt {
    #if canImport(Darwin)
      UInt(bitPattern: pthread_self())
    #else
      UInt(pthread_self())
    #endif
  }

  /// The thread that receives the database's results.
  private func thread(of database: Database) async -> UInt {
    await withTaskExecutorPreference(database.executor) { thread() }
  }

  @Test func `a task sends a statement and continues with its result on the database's thread`() async throws {
    try await withDatabase { database, _ in
      let its = await thread(of: database)
      // On a busy machine, the thread may seem busy to some of the jobs, which then run in the global pool.
      try await eventually("nearly all results arrive on the task's thread") {
        try await withTaskExecutorPreference(database.executor) {
          var resumed = 0
          for number in 0..<20 {
            let read: Int? = try await database.value("SELECT \(number)")
            #expect(read == number)
            if thread() == its { resumed += 1 }
            try await database.transaction { transaction in
              try await transaction.rows("SELECT 1")
              if thread() == its { resumed += 1 }
            }
          }
          return resumed >= 35
        }
      }
    }
  }

  @Test func `while the thread is busy, other tasks run in the global pool`() async throws {
    try await withDatabase { database, _ in
      let (began, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let its = await thread(of: database)
      let finished = Collected<Bool>()
      await withTaskGroup(of: Void.self) { tasks in
        tasks.addTask(executorPreference: database.executor) {
          // Blocks the database's thread, which a task must not do.
          block(began, until: mayEnd)
        }
        await withCheckedContinuation { continuation in
          DispatchQueue.global().async {
            began.wait()
            continuation.resume()
          }
        }
        for _ in 0..<50 {
          tasks.addTask(executorPreference: database.executor) { finished.append(thread() == its) }
        }
        // A few may wait for the thread.
        while finished.count < 42 { await Task.yield() }
        #expect(finished.all.allSatisfy { !$0 })
        mayEnd.signal()
      }
      #expect(finished.count == 50)
    }
  }

  @Test func `after a long task, those that waited behind it run in the global pool`() async throws {
    try await withDatabase { database, _ in
      let its = await thread(of: database)
      // On a busy machine, the tasks may not begin at once.
      try await eventually("a long task runs on the thread, and the others do not") {
        let wereThere = await withTaskExecutorPreference(database.executor) {
          await withTaskGroup(of: Bool.self) { tasks in
            for number in 0..<5 {
              tasks.addTask(executorPreference: database.executor) {
                let isThere = thread() == its
                if number == 0, isThere { usleep(5000) }
                return isThere
              }
            }
            return await tasks.reduce(into: []) { $0.append($1) }
          }
        }
        return wereThere.filter { $0 }.count == 1
      }
    }
  }

  private func block(_ began: DispatchSemaphore, until mayEnd: DispatchSemaphore) {
    began.signal()
    mayEnd.wait()
  }

  @Test func `after the database is closed, its tasks continue`() async throws {
    try await withDatabase { database, _ in
      let sum = await withTaskExecutorPreference(database.executor) {
        database.close()
        var sum = 0
        for number in 0..<1000 {
          sum += number
          await Task.yield()
        }
        return sum
      }
      #expect(sum == 499_500)
      #expect(await withTaskExecutorPreference(database.executor) { 1 } == 1)
    }
  }
}
