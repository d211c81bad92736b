import Foundation

/// A value protected by a lock that is held only briefly.
///
/// The standard library's `Mutex` would work, but ThreadSanitizer does not understand it and reports false races. With
/// this lock, a clean report is meaningful. The tests' helpers also use it, hence `package`.
@usableFromInline package final class Lock<Value>: Sendable {
  @usableFromInline final class Storage: ManagedBuffer<Value, pthread_mutex_t> {
    @inlinable deinit {
      _ = withUnsafeMutablePointerToElements { pthread_mutex_destroy($0) }
    }
  }

  /// Safe to share, which the compiler cannot see: the value is read and written only while its mutex is held.
  @usableFromInline nonisolated(unsafe) let storage: ManagedBuffer<Value, pthread_mutex_t>

  @inlinable package init(_ value: sending Value) {
    storage = Storage.create(minimumCapacity: 1) { buffer in
      buffer.withUnsafeMutablePointerToElements { mutex in
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
      }
      return value
    }
  }

  @inlinable package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    try storage.withUnsafeMutablePointers { value, mutex in
      pthread_mutex_lock(mutex)
      defer { pthread_mutex_unlock(mutex) }
      return try body(&value.pointee)
    }
  }

  /// Does nothing and returns nil if another thread holds the lock.
  @inlinable package func withLockIfFree<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result? {
    try storage.withUnsafeMutablePointers { value, mutex in
      guard pthread_mutex_trylock(mutex) == 0 else { return nil }
      defer { pthread_mutex_unlock(mutex) }
      return try body(&value.pointee)
    }
  }
}
