import Foundation

/// One collection on its way from a copy to the list as it is now. Decides what to ask for and what to believe; others
/// send the requests.
///
/// A verdict has the list from its beginning, as parts: runs of the claimed items, and new ones. A long list takes
/// several verdicts, each from the cursor of the one before. They belong together if they have the same stamp.
struct CopyUpdate: Sendable {
  enum Need: Hashable {
    /// A verdict on ``CopyUpdate/claim``.
    case verdict
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

  /// The items of a claim, and the items that a verdict compares.
  private static let maximumLength = 2000
  /// Items that are claimed in addition to as many as the last verdict had, for the next one to have more.
  private static let growth = 100
  /// The new items that a verdict may have besides the claimed ones; also the items of a verdict that count as one
  /// read.
  private static let usualLength = 500
  /// Failures after which an update gives up: responses that do not fit, responses without progress, and lists that
  /// change between two verdicts.
  private static let maximumFailures = 4

  let collection: CacheCollection
  /// The number of items to keep; the rest of the list is left with the service.
  private let length: Int
  private(set) var need = Need.verdict
  /// The copy that a verdict of "fresh" proves, or the list so far.
  private var base: StoredCopy?
  /// The stamp of the next claim.
  private var stamp: Stamp?
  /// Whether the next claim continues `base`, at its cursor.
  private(set) var isContinuing = false
  /// The items that the service need not send: those of the copy that are not in the list so far. First come those that
  /// follow the list so far in the copy, and last those that it has passed over. Mostly, these are gone.
  private var held: [StoredCopy.Entry]
  /// The most items of the next claim. Verdicts on long items have fewer than they may have, and the digests of others
  /// would be wasted.
  private var claimLength = maximumLength
  private var failures = 0

  init(_ collection: CacheCollection, from copy: StoredCopy?, length: Int = .max) {
    self.collection = collection
    self.length = length
    base = copy
    stamp = copy?.stamp
    held = Self.claimable(copy?.entries ?? [])
  }

  private static func claimable(_ entries: [StoredCopy.Entry]) -> [StoredCopy.Entry] {
    entries.filter(\.isClaimable)
  }

  /// The app's copy, or what is left of it. The service leaves out the items in it.
  var claim: Claim {
    Claim(
      timestamp: stamp, held: claimed.map(\.digest), limit: limit, cursor: isContinuing ? base?.nextCursor : nil)
  }

  private var claimed: ArraySlice<StoredCopy.Entry> { held.prefix(min(rest, claimLength)) }

  /// The number of items that a verdict is to have: without those that are held and not claimed. A short copy has room
  /// for some new items within one read.
  private var limit: Int {
    let count = claimed.count
    let length =
      if held.count > count {
        count
      } else if count + Self.growth <= Self.usualLength {
        Self.usualLength
      } else {
        count + Self.usualLength
      }
    return min(rest, length, Self.maximumLength)
  }

  /// The number of items that are still to come.
  private var rest: Int { length - (isContinuing ? base?.entries.count ?? 0 : 0) }

  /// Whether the stamp alone may show that the copy is fresh.
  var mayBeFresh: Bool { stamp != nil }

  /// The number of digests that are then not needed.
  var digestsToSpare: Int { mayBeFresh ? claimed.count : 0 }

  /// Takes a verdict on the stamp alone.
  ///
  /// - Parameter sentAt: when the request was sent.
  mutating func takeStampVerdict(_ verdict: Verdict?, sentAt: Date) {
    if verdict?.invalidate == true, verdict?.timestamp != nil {
      stamp = nil
    } else {
      take(verdict, sentAt: sentAt)
    }
  }

  /// - Parameter sentAt: when the request was sent.
  mutating func take(_ verdict: Verdict?, sentAt: Date) {
    guard let verdict else { return askAfresh("There is no verdict on \(collection.rawValue).") }
    guard verdict.invalidate else {
      guard var base, stamp == base.stamp, verdict.timestamp == base.stamp else {
        return askAfresh("A verdict calls another copy fresh.")
      }
      base.provedAt = sentAt
      held = []
      return goOn(with: base)
    }
    guard let timestamp = verdict.timestamp else {
      if isContinuing { return startAgain("The list changed between two verdicts.") }
      return need = .nothing(.unknown)
    }
    guard let entries = verdict.parts.flatMap({ StoredCopy.Entry.all(in: $0, claimed: claimed, of: collection) }) else {
      return askAfresh("A verdict has no parts, or some that do not fit the claim.")
    }
    var copy = StoredCopy(collection: collection, stamp: timestamp, entries: [], provedAt: sentAt)
    if isContinuing, let base {
      guard base.stamp == timestamp else { return startAgain("The list changed between two verdicts.") }
      copy = base
    }
    copy.entries += entries
    copy.nextCursor = verdict.nextCursor
    let keys = Set(copy.entries.map(\.key))
    guard keys.count == copy.entries.count else { return askAfresh("A verdict has an item twice.") }
    guard !entries.isEmpty || copy.nextCursor == nil else { return startAgain("A verdict has no items.") }
    passOver(entries)
    held.removeAll { keys.contains($0.key) }
    claimLength = min(max(entries.count + Self.growth, Self.usualLength), Self.maximumLength)
    goOn(with: copy)
  }

  /// Puts the held items before the end of a verdict behind the others, so that the next claim begins where the list
  /// continues. The end is the middle one of the last three places, because an item may have moved there from afar.
  private mutating func passOver(_ entries: [StoredCopy.Entry]) {
    let places = Dictionary(held.enumerated().map { ($1.key, $0) }) { first, _ in first }
    let last = entries.compactMap { places[$0.key] }.suffix(3).sorted()
    guard !last.isEmpty else { return }
    let end = last[last.count / 2] + 1
    held = Array(held[end...] + held[..<end])
  }

  /// The service does not take the cursor, for example because another release has made it.
  mutating func cursorWasRefused() {
    if isContinuing { startAgain("The cursor was refused.") }
  }

  /// The service does not understand the claim.
  ///
  /// - Returns: false if there were no digests that could be the reason.
  mutating func digestsWereRefused() -> Bool {
    guard !held.isEmpty else { return false }
    askAfresh("The digests were refused.")
    return true
  }

  /// Takes a list that is right as far as it goes.
  private mutating func goOn(with copy: StoredCopy) {
    base = copy
    stamp = nil
    isContinuing = copy.nextCursor != nil && copy.entries.count < length
    if !isContinuing { need = .nothing(.proved(copy)) }
  }

  /// Trusts no digests from now on, and asks for everything.
  private mutating func askAfresh(_ reason: String) {
    held = []
    begin()
    fail(reason)
  }

  /// Asks for the list from its beginning. Items already received go into the claim, so they are not sent again.
  private mutating func startAgain(_ reason: String) {
    if isContinuing { held = Self.claimable(base?.entries ?? []) + held }
    begin()
    fail(reason)
  }

  private mutating func begin() {
    stamp = nil
    isContinuing = false
  }

  private mutating func fail(_ reason: String) {
    failures += 1
    need = failures < Self.maximumFailures ? .verdict : .nothing(.failed(reason, beginning: base))
  }
}
