import Foundation
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

  private struct State {
    var waiting: [Job] = []
    var threads = 0
    /// A moving average of how long a hash takes.
    var seconds: Double

    /// The number of waiting callers is limited. Machines and their load differ, so the limit follows from the average
    /// duration of a hash.
    var isFull: Bool {
      let places = HashingThreads.maximumWait / max(seconds, 1e-6) * Double(HashingThreads.maximumThreads)
      return Double(waiting.count) >= min(max(places, HashingThreads.minimumPlaces), HashingThreads.maximumPlaces)
    }
  }

  private let state: Mutex<State>

  /// - Parameter seconds: the expected duration of a hash, until some have been made.
  init(expecting seconds: Double) {
    state = Mutex(State(seconds: seconds))
  }

  var isFull: Bool { state.withLock { $0.isFull } }

  /// Waits for a thread and for its result. Cancelling the task ends the wait immediately; work that has not begun is
  /// dropped.
  ///
  /// - Throws: ``AppError/busy`` if too many callers wait already.
  func run(_ work: @escaping @Sendable () throws -> [UInt8]) async throws -> [UInt8] {
    let job = Job(work)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        guard job.begin(continuation) else { return }
        if !add(job) { job.end(.failure(AppError.busy)) }
      }
    } onCancel: {
      job.end(.failure(CancellationError()))
      state.withLock { $0.waiting.removeAll { $0 === job } }
    }
  }

  /// False if there is no place left.
  private func add(_ job: Job) -> Bool {
    let (isAdded, isThreadWanted) = state.withLock { state -> (Bool, Bool) in
      guard !state.isFull else { return (false, false) }
      state.waiting.append(job)
      guard state.threads < Self.maximumThreads else { return (true, false) }
      state.threads += 1
      return (true, true)
    }
    // A thread lives as long as there is work. Starting one costs almost nothing compared to a hash.
    if isThreadWanted { Thread.detachNewThread { self.work() } }
    return isAdded
  }

  private func work() {
    #if os(Linux)
      // On Linux, this applies to the current thread only. Logins must not starve on a busy machine, so about a tenth
      // of a processor is left to them.
      _ = nice(10)
    #else
      Thread.current.qualityOfService = .utility
    #endif
    while let job = next() {
      let start = ContinuousClock.now
      job.run()
      let seconds = (ContinuousClock.now - start) / .seconds(1)
      // A duration that includes the machine's sleep says nothing about the next hash.
      state.withLock { $0.seconds += (min(seconds, Self.maximumWait) - $0.seconds) / 5 }
    }
  }

  /// The job that has waited longest. Nil if none is waiting, and then the thread ends.
  private func next() -> Job? {
    state.withLock { state in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
      state.threads -= 1
      return nil
    }
  }
}

/// One caller's wait. It ends once, with a result or because the caller gives up.
private final class Job: Sendable {
  private enum State {
    case new, ended
    case waiting(CheckedContinuation<[UInt8], any Error>)
  }

  private let work: @Sendable () throws -> [UInt8]
  private let state = Mutex(State.new)

  init(_ work: @escaping @Sendable () throws -> [UInt8]) {
    self.work = work
  }

  /// False if the caller has already given up.
  func begin(_ continuation: CheckedContinuation<[UInt8], any Error>) -> Bool {
    let isWanted = state.withLock { state in
      guard case .new = state else { return false }
      state = .waiting(continuation)
      return true
    }
    if !isWanted { continuation.resume(throwing: CancellationError()) }
    return isWanted
  }

  /// Does the work, unless the caller has given up.
  func run() {
    let isWanted = state.withLock { if case .waiting = $0 { true } else { false } }
    if isWanted { end(Result { try work() }) }
  }

  func end(_ result: Result<[UInt8], any Error>) {
    let waiting = state.withLock { state -> CheckedContinuation<[UInt8], any Error>? in
      defer { state = .ended }
      if case .waiting(let continuation) = state { return continuation }
      return nil
    }
    waiting?.resume(with: result)
  }
}

extension AppError {
  static let busy = AppError(.unavailable, "busy", "Too many users are logging in. Try again later.", retryAfter: 2)
}
