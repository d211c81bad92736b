/// Passes of a store: each sends what waits in the outbox, and then validates. One runs at a time, and calls that come
/// meanwhile share the next one.
struct Passes {
  var running: Task<Void, any Error>?
  /// Has not begun.
  var next: Task<Void, any Error>?
  /// What the next pass validates in addition to the collections that are not proved.
  var wanted: Set<CacheCollection> = []
}
