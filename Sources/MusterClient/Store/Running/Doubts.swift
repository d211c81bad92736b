/// Decides which collections are proved. A doubt is anything after which a copy may be out of date: the launch, a
/// change that the stream announces, a lost stream, a write, a failed request. A validation settles the doubts that
/// were raised before it began, and no others.
struct Doubts: Sendable {
  /// A moment between doubts.
  typealias Mark = Int

  /// The number of doubts so far. The launch is the first.
  private var count = 1
  private var raised: [CacheCollection: Mark]
  private var proved: [CacheCollection: Mark] = [:]

  init() { raised = Dictionary(uniqueKeysWithValues: CacheCollection.allCases.map { ($0, 1) }) }

  /// Now. Take it before a validation's request is sent.
  var mark: Mark { count }

  mutating func raise(_ collections: some Sequence<CacheCollection>) {
    count += 1
    for collection in collections { raised[collection] = count }
  }

  /// Records that a validation that began at `mark` has proved the collection's copy.
  mutating func settle(_ collection: CacheCollection, since mark: Mark) {
    proved[collection] = max(proved[collection] ?? 0, mark)
  }

  /// Whether a validation that began after the collection's last doubt has proved its copy.
  func isProved(_ collection: CacheCollection) -> Bool {
    isProved(collection, since: raised[collection] ?? 1)
  }

  /// Whether a validation that began at `mark` or later has proved the copy.
  func isProved(_ collection: CacheCollection, since mark: Mark) -> Bool { (proved[collection] ?? 0) >= mark }

  /// The collections that are not proved.
  var open: Set<CacheCollection> { Set(CacheCollection.allCases.filter { !isProved($0) }) }
}
