import Testing

@testable import MusterKit

@Suite(.timeLimit(.minutes(1))) struct AsyncLockTests {
  @Test func `one at a time holds the lock`() async throws {
    let lock = AsyncLock()
    let inside = Locked(0)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<100 {
        group.addTask {
          try await lock.withLock {
            #expect(
              inside.change {
                $0 += 1; return $0
              } == 1)
            await Task.yield()
            inside.change { $0 -= 1 }
          }
        }
      }
      try await group.waitForAll()
    }
  }

  @Test func `a task that is cancelled stops waiting, and the others get the lock`() async throws {
    let lock = AsyncLock()
    let isHeld = Locked(false)
    let mayEnd = Locked(false)
    let holder = Task {
      try await lock.withLock {
        isHeld.change { $0 = true }
        while !mayEnd.value { await Task.yield() }
      }
    }
    while !isHeld.value { await Task.yield() }
    let waiting = Task { try await lock.withLock {} }
    await Task.yield()
    waiting.cancel()
    await #expect(throws: CancellationError.self) { try await waiting.value }
    let next = Task { try await lock.withLock { 1 } }
    mayEnd.change { $0 = true }
    try await holder.value
    #expect(try await next.value == 1)
  }
}
