import Foundation
import NIOPosix
import Synchronization

/// A few threads that hash passwords. They are separate from the threads that serve requests, and have a lower
/// priority. Only as many callers may wait as can be served before they give up.
final class HashingThreads: Sendable {
  /// Seconds. Phones give up soon after, and hashing for a caller that is gone would delay everyone behind it.
  private static let maximumWait = 2.0
  private static let minimumPlaces = 4.0
  private static let maximumPlaces = 1024.0
  /// One processor is left to the rest of the service. The limit bounds memory: 32 MiB per thread at the recommended
  /// cost.
  static let maximumThreads = min(8, max(1, ProcessInfo.processInfo.activeProcessorCount - 1))

  private let pool = NIOThreadPool(numberOfThreads: maximumThreads)
  /// One for each thread. The pool has no limit for those that wait, and no caller of it can give up.
  private let seats = Seats(maximumThreads)
  /// A moving average of how long a hash takes.
  private let seconds: Mutex<Double>

  /// - Parameter seconds: the expected duration of a hash, until some have been made.
  init(expecting seconds: Double) {
    self.seconds = Mutex(seconds)
  }

  deinit { pool.shutdownGracefully { _ in } }

  /// How many callers may wait. Machines and their load differ, so the limit follows from the average duration of a
  /// hash.
  private var places: Int {
    let seconds = seconds.withLock { max($0, 1e-6) }
    let places = Self.maximumWait / seconds * Double(Self.maximumThreads)
    return Int(min(max(places, Self.minimumPlaces), Self.maximumPlaces))
  }

  var isFull: Bool { seats.waiting >= places }

  /// Waits for a thread and for its result. Cancelling the task ends the wait for a thread immediately, and the work is
  /// dropped. Work that has begun is finished.
  ///
  /// - Throws: ``AppError/busy`` if too many callers wait already.
  func run(_ work: @escaping @Sendable () throws -> [UInt8]) async throws -> [UInt8] {
    // The threads start with the first hash: most commands make none.
    pool.start()
    do {
      try await seats.take(waitingAtMost: places)
    } catch is Seats.AreFull {
      throw AppError.busy
    }
    return try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<[UInt8], any Error>) in
      pool.submit { _ in
        let result = Result { try self.measure(work) }
        // Before this caller continues, so that the thread does not wait for it.
        self.seats.leave()
        continuation.resume(with: result)
      }
    }
  }

  private func measure(_ work: () throws -> [UInt8]) rethrows -> [UInt8] {
    #if os(Linux)
      // On Linux, this applies to the current thread only. Logins must not starve on a busy machine, so about a tenth
      // of a processor is left to them.
      let process = Int32(PRIO_PROCESS.rawValue)
      _ = setpriority(process, 0, min(19, getpriority(process, id_t(getpid())) + 10))
    #else
      Thread.current.qualityOfService = .utility
    #endif
    let start = ContinuousClock.now
    let result = try work()
    let time = (ContinuousClock.now - start) / .seconds(1)
    // A duration that includes the machine's sleep says nothing about the next hash.
    seconds.withLock { $0 += (min(time, Self.maximumWait) - $0) / 5 }
    return result
  }
}

extension AppError {
  static let busy = AppError(.unavailable, "busy", "Too many users are logging in. Try again later.", retryAfter: 2)
}
