/// Passes of a store: each sends pending writes, and then validates. One runs at a time, and calls that come meanwhile
/// share the next one.
struct Passes {
  var running: Task<Void, any Error>?
  /// Has not begun.
  var next: Task<Void, any Error>?
  /// The collections that the next pass validates in addition to those that are not proved.
  var wanted: Set<CacheCollection> = []
}
