import Foundation
import Synchronization

/// The statements in flight on a connection. Callers read it before each statement to choose a connection, so it needs
/// no lock.
struct ConnectionLoad: ~Copyable, Sendable {
  private let batches = Atomic(0)
  /// The size of the parameters.
  private let bytes = Atomic(0)
  /// When the running statement began, in nanoseconds of ``clock()``. While nothing is in flight: when the last one
  /// ended.
  private let busySince = Atomic(ConnectionLoad.clock())

  /// How long a connection may have been idle before a caller sends on it, in nanoseconds.
  private static let maximumPause: Int64 = 100_000_000
  /// The time that a short statement takes, in nanoseconds.
  private static let shortStatement: Int64 = 50_000

  var isEmpty: Bool { batches.load(ordering: .relaxed) == 0 }

  func hasBatches(atLeast count: Int) -> Bool { batches.load(ordering: .relaxed) >= count }

  func hasBytes(atLeast count: Int) -> Bool { bytes.load(ordering: .relaxed) >= count }

  /// Adds a batch.
  ///
  /// - Returns: whether its caller may send it: nothing was in flight, but something was a short while ago.
  func add(bytes count: Int) -> Bool {
    var maySend = false
    if batches.wrappingAdd(1, ordering: .relaxed).oldValue == 0 {
      let clock = Self.clock()
      maySend = clock - busySince.exchange(clock, ordering: .relaxed) < Self.maximumPause
    }
    bytes.wrappingAdd(count, ordering: .relaxed)
    return maySend
  }

  /// Records that results have ended.
  func noteResults() { busySince.store(Self.clock(), ordering: .relaxed) }

  func remove(bytes count: Int) {
    batches.wrappingSubtract(1, ordering: .relaxed)
    bytes.wrappingSubtract(count, ordering: .relaxed)
  }

  /// How long a statement sent now would probably wait, in nanoseconds. A statement that has run long will probably
  /// keep running, so the age of the running statement counts like the statements behind it.
  func expectedWait() -> Int64 {
    let count = batches.load(ordering: .relaxed)
    guard count > 0 else { return 0 }
    return Int64(count) * Self.shortStatement + max(0, Self.clock() - busySince.load(ordering: .relaxed))
  }

  /// Whether nothing has been in flight for this long.
  func isEmpty(for time: Duration) -> Bool {
    isEmpty && .nanoseconds(Self.clock() - busySince.load(ordering: .relaxed)) > time
  }

  /// A monotonic clock in nanoseconds, which fits an atomic.
  private static func clock() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
