import Postgres

@testable import App

/// The results that the contract requires for each presented refresh token. It derives them from the tokens that were
/// issued before. It keeps the history of one session, where the service keeps a row of numbers.
struct RefreshModel: Sendable {
  /// An issued token, and the token that was presented for it. The first one has no parent.
  struct Handout: Sendable {
    let token: RefreshToken
    let parent: RefreshToken?
    let time: Timestamp
  }

  enum Verdict: String, CaseIterable, Sendable {
    /// The token is the current one, or newer, which is treated alike.
    case accepted
    /// The token is the parent of the current one, after a lost response. Within the window the current one is returned
    /// again. After the window a new one takes its place.
    case again, branched
    /// The token is older than the parent of the current one, or superseded.
    case theft
    /// The session has ended.
    case ended
  }

  private static let convergence: Int64 = 10_000_000
  static let idle: Int64 = 60 * 86_400_000_000
  static let age: Int64 = 365 * 86_400_000_000

  let start: Timestamp
  /// The latest tokens, oldest first. The last one is the current one, which has not been used yet.
  private(set) var handouts: [Handout]
  private var hasEnded = false

  init(_ first: RefreshToken, at start: Timestamp) {
    self.start = start
    handouts = [Handout(token: first, parent: nil, time: start)]
  }

  var current: Handout { handouts[handouts.count - 1] }

  /// The time from which the parent no longer gets the current token again.
  var convergenceEnd: Timestamp { current.time.adding(microseconds: Self.convergence) }

  /// Whether the session has been idle for too long, or is too old.
  func isExpired(at now: Timestamp) -> Bool {
    now >= current.time.adding(microseconds: Self.idle) || now >= start.adding(microseconds: Self.age)
  }

  /// - Parameter kid: the id of the current signing key.
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
    // A backup is at most this old.
    if handouts.count > 8 { handouts.removeFirst() }
    return .given(token)
  }

  /// Forgets the latest tokens, as a restored database does.
  mutating func forget(_ count: Int) {
    handouts.removeLast(min(count, handouts.count - 1))
  }
}

extension RefreshToken {
  /// Whether both have the same position, regardless of the key.
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

/// The result of presenting a refresh token, as the client sees it.
enum RefreshOutcome: Equatable, Sendable {
  case given(RefreshToken), theft, ended

  var token: RefreshToken? {
    if case .given(let token) = self { return token }
    return nil
  }
}
