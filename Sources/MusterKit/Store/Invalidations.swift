/// Decides which collections are proved. An invalidation is anything after which a copy may be out of date: the launch,
/// a change that the stream announces, a lost stream, a write, a failed request. A validation covers the invalidations
/// from before it began, and no others.
struct Invalidations: Sendable {
  /// A moment between invalidations.
  typealias Mark = Int

  /// The number of invalidations so far. The launch is the first.
  private var count = 1
  private var invalidated: [CacheCollection: Mark]
  private var proved: [CacheCollection: Mark] = [:]
  /// The same for the past events. The service does not announce when they change, but there are signs of it, such as
  /// a change in these lists.
  private var past: (invalidated: Mark, proved: Mark) = (1, 0)
  /// Past events show people: the user, hosts, and no one who is blocked.
  static let pastSigns: Set<CacheCollection> = [.profile, .friends, .blocks]

  init() { invalidated = Dictionary(uniqueKeysWithValues: CacheCollection.allCases.map { ($0, 1) }) }

  /// Now. Take it before a validation's request is sent.
  var mark: Mark { count }

  mutating func add(_ collections: some Sequence<CacheCollection>) {
    count += 1
    for collection in collections { invalidated[collection] = count }
  }

  mutating func addPast() {
    count += 1
    past.invalidated = count
  }

  mutating func recordPastValidation(since mark: Mark) { past.proved = max(past.proved, mark) }

  /// Whether the lists are proved that would show a sign.
  var areSignsProved: Bool { Self.pastSigns.union([.events]).allSatisfy { isProved($0) } }

  /// Whether a validation that began after the last sign of a change has proved the past events.
  var isPastProved: Bool { past.proved >= past.invalidated }

  /// A validation that began at `mark` has proved the collection's copy.
  mutating func recordValidation(of collection: CacheCollection, since mark: Mark) {
    proved[collection] = max(proved[collection] ?? 0, mark)
  }

  /// Whether a validation that began after the collection's last invalidation has proved its copy.
  func isProved(_ collection: CacheCollection) -> Bool {
    isProved(collection, since: invalidated[collection] ?? 1)
  }

  /// Whether a validation that began at `mark` or later has proved the copy.
  func isProved(_ collection: CacheCollection, since mark: Mark) -> Bool { (proved[collection] ?? 0) >= mark }

  /// The collections that are not proved.
  var unproved: Set<CacheCollection> { Set(CacheCollection.allCases.filter { !isProved($0) }) }
}
