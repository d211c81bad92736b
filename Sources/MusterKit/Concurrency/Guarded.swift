import Foundation

/// A value behind a lock. Safe to share, which the compiler cannot see: the value is read and written only while the
/// lock is held. `Mutex` needs iOS 18.
final class Guarded<Value>: @unchecked Sendable {
  private let lock = NSLock()
  private var value: Value

  init(_ value: Value) { self.value = value }

  func withLock<R>(_ body: (inout Value) throws -> R) rethrows -> R {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value)
  }
}
