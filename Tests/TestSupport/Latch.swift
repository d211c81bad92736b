import Foundation
import Postgres

/// Holds those that reach it until it is open.
public final class Latch: Sendable {
  private let state = Lock((waiting: 0, isOpen: false))

  public init() {}

  public var isOpen: Bool { state.withLock { $0.isOpen } }
  /// How many have reached it.
  public var waiting: Int { state.withLock { $0.waiting } }

  public func open() {
    state.withLock { $0.isOpen = true }
  }

  /// Returns when it is open, or when the task is cancelled.
  public func wait() async {
    state.withLock { $0.waiting += 1 }
    while !isOpen, !Task.isCancelled { try? await Task.sleep(for: .milliseconds(10)) }
  }

  /// Blocks the thread until it is open.
  public func block() {
    state.withLock { $0.waiting += 1 }
    while !isOpen { Thread.sleep(forTimeInterval: 0.002) }
  }
}

/// Counts by name.
public final class Tally<Name: Hashable & Sendable>: Sendable {
  private let counts = Lock<[Name: Int]>([:])

  public init() {}

  public subscript(name: Name) -> Int { counts.withLock { $0[name] ?? 0 } }

  /// - Returns: how often it was called with this name, this time included.
  @discardableResult
  public func count(_ name: Name) -> Int {
    counts.withLock { counts in
      counts[name, default: 0] += 1
      return counts[name] ?? 0
    }
  }

  public func add(_ more: [Name: Int]) {
    counts.withLock { $0.merge(more) { $0 + $1 } }
  }
}
