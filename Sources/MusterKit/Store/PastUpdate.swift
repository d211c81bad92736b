import Foundation

/// The past events on their way from a copy to the list as it is now. Decides what to ask for and what to believe;
/// others send the requests.
///
/// The list has no stamp. Each claim has the digests of all items that the app holds, and asks for the list from its
/// beginning: one verdict, and so one snapshot, proves the copy. What is too long for a verdict comes with the next.
struct PastUpdate: Sendable {
  typealias Outcome = CopyUpdate.Outcome

  enum Need: Hashable {
    /// A verdict on ``PastUpdate/claim``.
    case verdict
    case nothing(Outcome)
  }

  /// The name of the list in claims and files.
  static let list = "pastEvents"
  /// The least number of items that are kept, if there are as many. Those of the last year are kept in such steps.
  static let step = 100
  static let maximumLength = 500
  /// Seconds.
  private static let year: TimeInterval = 366 * 86_400
  /// The most digests of a claim.
  private static let maximumClaim = 2000
  /// Verdicts after which an update gives up. With nothing held, the longest list takes two.
  private static let maximumVerdicts = 12

  private(set) var need = Need.verdict
  /// Whether the next claim must be alone in its request: otherwise other lists may take the room for its items.
  private(set) var isAlone = false
  private let copy: StoredCopy?
  /// The items that the service need not send.
  private var held: [StoredCopy.Entry]
  /// The number of items to keep.
  private var length: Int
  private var verdicts = 0

  init(from copy: StoredCopy?, at now: Date) {
    self.copy = copy
    let entries = copy?.entries ?? []
    held = entries.filter(\.isClaimable)
    // With room for one event more, which shows that the year ends before it.
    let ofLastYear = entries.lastIndex { Self.isOfLastYear($0, at: now) }.map { $0 + 1 } ?? 0
    length = min((ofLastYear / Self.step + 1) * Self.step, Self.maximumLength)
  }

  var claim: Claim { Claim(timestamp: nil, held: claimed.map(\.digest), limit: length) }

  private var claimed: ArraySlice<StoredCopy.Entry> { held.prefix(Self.maximumClaim) }

  /// - Parameters:
  ///   - sentAt: when the request was sent.
  ///   - wasAlone: whether the request had no other claim.
  mutating func take(_ verdict: Verdict?, sentAt: Date, wasAlone: Bool) {
    verdicts += 1
    // An earlier release of the service does not know the list.
    guard let parts = verdict?.parts else { return need = .nothing(.unknown) }
    guard let entries = StoredCopy.Entry.all(in: parts, claimed: claimed, of: .events),
      Set(entries.map(\.key)).count == entries.count, entries.count <= length,
      !entries.isEmpty || verdict?.nextCursor == nil
    else {
      held = []
      return askAgain("The parts of the past events do not fit the claim.")
    }
    let isCut = verdict?.nextCursor != nil && entries.count < length
    if isCut, !wasAlone || parts.contains(where: { $0.item != nil }) {
      hold(entries)
      return askAgain("The past events never end.")
    }
    if verdict?.nextCursor != nil, entries.count == length, length < Self.maximumLength,
      entries.last.map({ Self.isOfLastYear($0, at: sentAt) }) ?? false
    {
      hold(entries)
      length += Self.step
      return askAgain("The past events never end.")
    }
    let isKnown = copy?.entries == entries && copy?.nextCursor == verdict?.nextCursor
    let stamp = copy.flatMap { isKnown ? $0.stamp : nil } ?? Stamp(rawValue: UUID().wire)
    need = .nothing(
      .proved(
        StoredCopy(
          list: Self.list, stamp: stamp, entries: entries, nextCursor: verdict?.nextCursor, provedAt: sentAt)))
  }

  /// The service does not understand the claim.
  ///
  /// - Returns: false if there were no digests that could be the reason.
  mutating func digestsWereRefused() -> Bool {
    guard !held.isEmpty else { return false }
    held = []
    return true
  }

  private mutating func hold(_ entries: [StoredCopy.Entry]) {
    let keys = Set(entries.map(\.key))
    held = entries + held.filter { !keys.contains($0.key) }
  }

  private mutating func askAgain(_ reason: String) {
    isAlone = true
    if verdicts >= Self.maximumVerdicts { need = .nothing(.failed(reason, beginning: nil)) }
  }

  private struct Start: Decodable {
    let startTime: Date
  }

  /// A wrong clock keeps more or fewer events, and no wrong ones.
  private static func isOfLastYear(_ entry: StoredCopy.Entry, at now: Date) -> Bool {
    guard let start = try? JSONDecoder.muster().decode(Start.self, from: entry.json) else { return false }
    return now.timeIntervalSince(start.startTime) < Self.year
  }
}
