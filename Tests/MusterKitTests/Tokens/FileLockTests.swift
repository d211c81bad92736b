import Dispatch
import Foundation
import Testing

@testable import MusterKit

@Suite(.timeLimit(.minutes(1))) final class FileLockTests {
  private let file = FileManager.default.temporaryDirectory.appending(path: "muster-lock-\(UUID())/a.lock")

  deinit { try? FileManager.default.removeItem(at: file.deletingLastPathComponent()) }

  /// Grants time to work until ``expire()``, as iOS does.
  private final class Phone: Sendable {
    private let block = Guarded<(@Sendable (Bool) -> Void)?>(nil)
    let isHeldUp = Guarded(false)
    let reasons = Guarded<[String]>([])

    var system: ExpiringActivity.System {
      { reason, block in
        self.reasons.withLock { $0.append(reason) }
        self.block.withLock { $0 = block }
        Thread.detachNewThread {
          self.isHeldUp.withLock { $0 = true }
          block(false)
          self.isHeldUp.withLock { $0 = false }
        }
      }
    }

    func expire() {
      let block = block.withLock { $0 }
      Thread.detachNewThread { block?(true) }
    }
  }

  private func isFree() async throws -> Bool {
    do {
      try await FileLock(file: file, patience: 0).withLock {}
      return true
    } catch FileLock.Failure.held {
      return false
    }
  }

  @Test func `the system is held up for as long as the lock is held`() async throws {
    let phone = Phone()
    let lock = FileLock(file: file, reason: "Testing", system: phone.system)
    #expect(try await lock.withLock { phone.isHeldUp.withLock { $0 } ? 7 : 0 } == 7)
    while phone.isHeldUp.withLock({ $0 }) { await Task.yield() }
    #expect(phone.reasons.withLock { $0 } == ["Testing"])
    #expect(try await isFree())
  }

  @Test func `when the time is up, the work is cancelled and the lock released`() async throws {
    let phone = Phone()
    let isWorking = Guarded(false)
    let file = file
    let work = Task {
      try await FileLock(file: file, system: phone.system).withLock {
        isWorking.withLock { $0 = true }
        try await Task.sleep(for: .seconds(600))
      }
    }
    while !isWorking.withLock({ $0 }) { await Task.yield() }
    #expect(try await !isFree())
    phone.expire()
    await #expect(throws: FileLock.Failure.suspended) { try await work.value }
    #expect(try await isFree())
    while phone.isHeldUp.withLock({ $0 }) { await Task.yield() }
  }

  @Test func `without any time, nothing is locked`() async throws {
    let lock = FileLock(file: file, system: { _, block in Thread.detachNewThread { block(true) } })
    let hasRun = Guarded(false)
    await #expect(throws: FileLock.Failure.suspended) { try await lock.withLock { hasRun.withLock { $0 = true } } }
    #expect(!hasRun.withLock { $0 } && !FileManager.default.fileExists(atPath: file.path))
  }

  @Test func `a cancelled caller gets CancellationError`() async throws {
    let phone = Phone()
    let isWorking = Guarded(false)
    let file = file
    let work = Task {
      try await FileLock(file: file, system: phone.system).withLock {
        isWorking.withLock { $0 = true }
        try await Task.sleep(for: .seconds(600))
      }
    }
    while !isWorking.withLock({ $0 }) { await Task.yield() }
    work.cancel()
    await #expect(throws: CancellationError.self) { try await work.value }
    #expect(try await isFree())
  }
}
