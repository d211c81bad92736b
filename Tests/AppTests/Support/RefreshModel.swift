import Postgres

@testable import App

/// What came of showing a refresh token, as whoever showed it sees it.
enum RefreshOutcome: Equatable, Sendable {
  case given(RefreshToken), theft, ended

  var token: RefreshToken? {
    if case .given(let token) = self { return token }
    return nil
  }
}

/// What the contract makes of each refresh token that is shown, told from what was handed out before: the history of one
/// session, where the service keeps a row of numbers.
struct RefreshModel: Sendable {
  /// A token, and the one that was shown for it: none for the first.
  struct Handout: Sendable {
    let token: RefreshToken
    let parent: RefreshToken?
    let time: Timestamp
  }

  enum Verdict: String, CaseIterable, Sendable {
    /// It was the current one; or ahead of it, which is as good.
    case accepted
    /// It was the current one's parent: a lost answer. The same again, or after a while another in its place.
    case again, branched
    /// It was superseded, or older.
    case theft
    /// Its session was over.
    case ended
  }

  private static let convergence: Int64 = 10_000_000
  static let idle: Int64 = 60 * 86_400_000_000
  static let age: Int64 = 365 * 86_400_000_000

  let start: Timestamp
  /// The latest ones, oldest first. The last is the current one: using it would have handed out another.
  private(set) var handouts: [Handout]
  private var hasEnded = false

  init(_ first: RefreshToken, at start: Timestamp) {
    self.start = start
    handouts = [Handout(token: first, parent: nil, time: start)]
  }

  var current: Handout { handouts[handouts.count - 1] }

  /// When the current one is no longer given again for its parent.
  var convergenceEnd: Timestamp { current.time.adding(microseconds: Self.convergence) }

  /// Idle for too long, or too old.
  func isExpired(at now: Timestamp) -> Bool {
    now >= current.time.adding(microseconds: Self.idle) || now >= start.adding(microseconds: Self.age)
  }

  /// - Parameter kid: of the key that signs at present.
  mutating func show(
    _ token: RefreshToken, at now: Timestamp, signing kid: String
  ) -> (verdict: Verdict, outcome: RefreshOutcome) {
    let current = current
    guard !hasEnded, !isExpired(at: now) else { return (.ended, .ended) }
    if token.isPlaced(as: current.token) || token.isNewer(than: current.token) {
      let next = RefreshToken(session: token.session, counter: token.counter + 1, branch: 0, kid: kid)
      return (.accepted, handOut(next, for: token, at: now))
    }
    guard let parent = current.parent, token.isPlaced(as: parent) else {
      hasEnded = true
      return (.theft, .theft)
    }
    guard now >= convergenceEnd else { return (.again, .given(current.token)) }
    let sibling = RefreshToken(
      session: token.session, counter: current.token.counter, branch: current.token.branch + 1, kid: kid)
    return (.branched, handOut(sibling, for: token, at: now))
  }

  private mutating func handOut(_ token: RefreshToken, for parent: RefreshToken, at now: Timestamp) -> RefreshOutcome {
    handouts.append(Handout(token: token, parent: parent, time: now))
    // As far back as a backup may lie.
    if handouts.count > 8 { handouts.removeFirst() }
    return .given(token)
  }

  /// The database was restored: what was handed out since is not known to it.
  mutating func forget(_ count: Int) {
    handouts.removeLast(min(count, handouts.count - 1))
  }
}

extension RefreshToken {
  /// Whatever key signed it.
  func isPlaced(as other: RefreshToken) -> Bool {
    (counter, branch) == (other.counter, other.branch)
  }

  func isNewer(than other: RefreshToken) -> Bool {
    (counter, branch) > (other.counter, other.branch)
  }
}

extension Timestamp {
  func adding(microseconds count: Int64) -> Timestamp {
    Timestamp(microseconds: microseconds + count)
  }
}
