import Foundation

/// One collection on its way from a copy to the list as it is now. Decides what to ask for and what to believe; others
/// send the requests.
struct CopyUpdate: Sendable {
  enum Need: Hashable {
    /// A verdict on ``CopyUpdate/claim``.
    case verdict
    case page(cursor: String)
    case nothing(Outcome)
  }

  enum Outcome: Hashable, Sendable {
    /// The list as it is now.
    case proved(StoredCopy)
    /// The service does not know the collection.
    case unknown
    /// The responses did not fit together, or the list kept changing. The beginning of the list can be shown if there
    /// is no copy.
    case failed(String, beginning: StoredCopy?)
  }

  /// The items whose digests a claim has: as many as a verdict has keys.
  private static let claimLength = 500
  /// Failures after which an update gives up: responses that do not fit, responses without progress, and lists that
  /// change between two pages.
  private static let maximumFailures = 4

  let collection: CacheCollection
  /// The number of items to keep; the rest of the list is left with the service.
  private let length: Int
  private(set) var need = Need.verdict
  /// The contents of the next claim.
  private var stamp: Stamp?
  private var held: [StoredCopy.Entry]
  /// The copy that a verdict of "fresh" proves.
  private var base: StoredCopy?
  private var failures = 0
  /// The items that did not fit into the last response.
  private var missing = Int.max

  init(_ collection: CacheCollection, from copy: StoredCopy?, length: Int = .max) {
    self.collection = collection
    self.length = length
    base = copy
    stamp = copy?.stamp
    held = Array((copy?.entries ?? []).prefix(Self.claimLength))
  }

  /// The app's copy. The service leaves out the items in it.
  var claim: Claim {
    Claim(timestamp: stamp, items: Dictionary(held.map { ($0.key, $0.digest) }, uniquingKeysWith: { $1 }))
  }

  /// Whether items are asked for that did not fit into a response.
  var isCollecting: Bool { missing != .max }

  /// - Parameter sentAt: when the request was sent.
  mutating func take(_ verdict: Verdict?, sentAt: Date) {
    guard let verdict else { return askAfresh("There is no verdict on \(collection.rawValue).") }
    guard verdict.invalidate else {
      guard var base, stamp == base.stamp, verdict.timestamp == base.stamp else {
        return askAfresh("A verdict calls another copy fresh.")
      }
      base.provedAt = sentAt
      return goOn(with: base)
    }
    guard let timestamp = verdict.timestamp else { return need = .nothing(.unknown) }
    guard let keys = verdict.keys, let changed = verdict.changed, Set(keys).count == keys.count else {
      return askAfresh("A verdict has no keys, or has one twice.")
    }
    let claimed = Dictionary(held.map { ($0.key, $0) }, uniquingKeysWith: { $1 })
    let left = Set(verdict.missing ?? [])
    var entries: [StoredCopy.Entry] = []
    var absent = 0
    for key in keys {
      if let new = changed[key] {
        guard let entry = StoredCopy.Entry(key: key, digest: new.digest, item: new.item) else {
          return askAfresh("An item cannot be stored.")
        }
        entries.append(entry)
      } else if left.contains(key) {
        absent += 1
      } else if let entry = claimed[key] {
        entries.append(entry)
      } else {
        return askAfresh("A verdict leaves out an item that was not claimed.")
      }
    }
    guard absent == 0 else { return askForMissing(absent, holding: entries) }
    goOn(
      with: StoredCopy(
        collection: collection, stamp: timestamp, entries: entries, nextCursor: verdict.nextCursor, provedAt: sentAt))
  }

  /// Takes the page after the entries so far.
  mutating func take(_ page: RawPage) {
    guard var copy = base else { return askAfresh("There is a page without a beginning.") }
    guard page.timestamp == copy.stamp else { return startAgain("The list changed between two pages.") }
    guard page.digests.count == page.items.count, !page.items.isEmpty || page.nextCursor == nil else {
      return startAgain("A page has no digests or no items.")
    }
    var keys = Set(copy.entries.map(\.key))
    for (item, digest) in zip(page.items, page.digests) {
      guard let key = collection.key(of: item), keys.insert(key).inserted,
        let entry = StoredCopy.Entry(key: key, digest: digest, item: item)
      else { return startAgain("An item has no key, or comes twice.") }
      copy.entries.append(entry)
    }
    copy.nextCursor = page.nextCursor
    goOn(with: copy)
  }

  /// The service does not take the cursor, for example after a restored backup.
  mutating func pageWasRefused() {
    stamp = nil
    startAgain("The cursor was refused.", keepingStamp: false)
  }

  /// Takes a list that is right as far as it goes.
  private mutating func goOn(with copy: StoredCopy) {
    base = copy
    if let cursor = copy.nextCursor, copy.entries.count < length {
      need = .page(cursor: cursor)
    } else {
      need = .nothing(.proved(copy))
    }
  }

  /// Asks again for items that did not fit into the response. Items already received go into the claim, so they are not
  /// sent again.
  private mutating func askForMissing(_ count: Int, holding entries: [StoredCopy.Entry]) {
    let hasProgress = count < missing
    missing = count
    stamp = nil
    held = entries
    if hasProgress { need = .verdict } else { fail("The missing items of \(collection.rawValue) were not sent.") }
  }

  /// Trusts no digests from now on, and asks for everything.
  private mutating func askAfresh(_ reason: String) {
    stamp = nil
    held = []
    missing = .max
    fail(reason)
  }

  private mutating func startAgain(_ reason: String, keepingStamp: Bool = true) {
    stamp = keepingStamp ? base?.stamp : nil
    held = Array((base?.entries ?? []).prefix(Self.claimLength))
    missing = .max
    fail(reason)
  }

  private mutating func fail(_ reason: String) {
    failures += 1
    need = failures < Self.maximumFailures ? .verdict : .nothing(.failed(reason, beginning: base))
  }
}
