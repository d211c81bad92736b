import Postgres
import Synchronization

/// A value that tests share between tasks.
final class Locked<Value: Sendable>: Sendable {
  private let stored: Mutex<Value>

  init(_ value: Value) { stored = Mutex(value) }

  var value: Value { stored.withLock { $0 } }

  @discardableResult
  func change<R: Sendable>(_ body: (inout Value) throws -> R) rethrows -> R { try stored.withLock { try body(&$0) } }
}

/// Something that happens once.
final class Once: Sendable {
  private let isLeft = Lock(true)

  /// - Returns: true for the first caller only.
  func take() -> Bool {
    isLeft.withLock { isLeft in
      defer { isLeft = false }
      return isLeft
    }
  }
}
