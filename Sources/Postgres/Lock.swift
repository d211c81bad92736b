import Foundation

/// A value behind a lock that is held for moments only.
///
/// The standard library's `Mutex` would do, but ThreadSanitizer does not see through it, and reports races where there
/// are none: with this one a clean report means something. Hence of the package: the tests' helpers use it, too.
// Sendable by hand: the value is reached only while the lock is held.
package final class Lock<Value>: @unchecked Sendable {
  private final class Storage: ManagedBuffer<Value, pthread_mutex_t> {
    deinit {
      _ = withUnsafeMutablePointerToElements { pthread_mutex_destroy($0) }
    }
  }

  private let storage: ManagedBuffer<Value, pthread_mutex_t>

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
