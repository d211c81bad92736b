#if SANITIZE_THREAD
  import Postgres

  /// The same stand-in as in the service.
  typealias Mutex<Value> = Lock<Value>
#endif
