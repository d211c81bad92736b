#if SANITIZE_THREAD
  import Postgres

  /// ThreadSanitizer does not understand the standard library's `Mutex` and reports false races. `Scripts/test-tsan`
  /// builds with this lock in its place.
  typealias Mutex<Value> = Lock<Value>
#endif
