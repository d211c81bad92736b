import Foundation
import Synchronization

/// A few threads that hash, apart from those that serve requests and behind them in line for the processors, with no
/// more callers waiting than will be served while they still care.
final class HashingThreads: Sendable {
  /// Seconds. Phones give up soon after; what is hashed for nobody would delay everybody behind it.
  private static let longestWait = 2.0
  private static let fewestPlaces = 4.0
  private static let mostPlaces = 1024.0
  /// One processor is left to the rest of the service. The limit is one of memory: 32 MiB each at the recommended cost.
  static let maximumThreads = min(8, max(1, ProcessInfo.processInfo.activeProcessorCount - 1))

  private struct State {
    var waiting: [Job] = []
    var threads = 0
    /// What a hash has taken of late.
    var seconds: Double

    /// How many may wait: machines differ, and what else runs on them, so it follows from what hashes have taken.
    var isFull: Bool {
      let places = HashingThreads.longestWait / max(seconds, 1e-6) * Double(HashingThreads.maximumThreads)
      return Double(waiting.count) >= min(max(places, HashingThreads.fewestPlaces), HashingThreads.mostPlaces)
    }
  }

  private let state: Mutex<State>

  /// - Parameter seconds: what a hash is expected to take, until some have been made.
  init(expecting seconds: Double) {
    state = Mutex(State(seconds: seconds))
  }

  var isFull: Bool { state.withLock { $0.isFull } }

  /// Waits for a thread and for its result. Cancelling the task ends the wait at once; what is not begun is not done.
  ///
  /// - Throws: ``AppError/tooManyPasswords`` if too many wait already.
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
    // A thread lives as long as there is work: starting one costs nothing beside a hash.
    if isThreadWanted { Thread.detachNewThread { self.work() } }
    return isAdded
  }

  private func work() {
    #if os(Linux)
      // Of this thread alone, on Linux. Logins must not starve on a busy machine: some tenth of a processor is left.
      _ = nice(10)
    #else
      Thread.current.qualityOfService = .utility
    #endif
    while let job = next() {
      let start = ContinuousClock.now
      job.run()
      let seconds = (ContinuousClock.now - start) / .seconds(1)
      // One that a machine slept through says nothing of the next.
      state.withLock { $0.seconds += (min(seconds, Self.longestWait) - $0.seconds) / 5 }
    }
  }

  /// The one that has waited longest; nil once nobody does.
  private func next() -> Job? {
    state.withLock { state in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
      state.threads -= 1
      return nil
    }
  }
}

/// One caller's wait: ends once, by a result or by giving up.
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

  /// False if the caller gave up before.
  func begin(_ continuation: CheckedContinuation<[UInt8], any Error>) -> Bool {
    let isWanted = state.withLock { state in
      guard case .new = state else { return false }
      state = .waiting(continuation)
      return true
    }
    if !isWanted { continuation.resume(throwing: CancellationError()) }
    return isWanted
  }

  /// Does the work, unless the caller is gone.
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
  static let busy = AppError(.unavailable, "busy", "Too many people are signing in just now.", retryAfter: 2)
}
