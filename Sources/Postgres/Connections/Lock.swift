import Foundation

/// A value behind a lock that is held for moments only.
///
/// The standard library's `Mutex` would do, but ThreadSanitizer does not see through it, and reports races where there
/// are none: with this one a clean report means something. Hence of the package: the tests' helpers use it, too.
package final class Lock<Value>: Sendable {
  private final class Storage: ManagedBuffer<Value, pthread_mutex_t> {
    deinit {
      _ = withUnsafeMutablePointerToElements { pthread_mutex_destroy($0) }
    }
  }

  /// Unsafe for the compiler only: the value is used only while the mutex beside it is held.
  nonisolated(unsafe) private let storage: ManagedBuffer<Value, pthread_mutex_t>

  package init(_ value: sending Value) {
    storage = Storage.create(minimumCapacity: 1) { buffer in
      buffer.withUnsafeMutablePointerToElements { mutex in
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
      }
      return value
    }
  }

  package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    try storage.withUnsafeMutablePointers { value, mutex in
      pthread_mutex_lock(mutex)
      defer { pthread_mutex_unlock(mutex) }
      return try body(&value.pointee)
    }
  }
}
