import Foundation

/// A value that tests share between tasks. Safe to share, which the compiler cannot see: it is read and written only
/// while the lock is held.
final class Locked<Value: Sendable>: @unchecked Sendable {
  private let lock = NSLock()
  private var stored: Value

  init(_ value: Value) { stored = value }

  var value: Value { lock.withLock { stored } }

  @discardableResult
  func change<R>(_ body: (inout Value) throws -> R) rethrows -> R { try lock.withLock { try body(&stored) } }
}
