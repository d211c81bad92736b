import Postgres
import Synchronization

@testable import App

/// An implementation in memory that breaks one rule, which the tests must detect.
final class FlawedSessions: RefreshMachine {
  enum Flaw: String, CaseIterable, Sendable {
    case acceptsSuperseded, acceptsGrandparent, acceptsEverything
    case takesRetriesForTheft, takesRestoredForTheft, forgetsParentBranch
    case neverConverges, alwaysConverges, convergesTooLong, keepsTimeOfBranches
    case signsWithOldKeys, forgetsKeys
    case ignoresIdleness, ignoresAge
    case forgivesTheft, recordsNoTheft, endsAllSessions
  }

  private struct Row {
    var counter = 0
    var branch = 0
    var parentBranch = 0
    var rotatedAt: Timestamp
    var kid: String
    let createdAt: Timestamp
    var hasEnded = false
  }

  private let flaw: Flaw?
  private let rows = Mutex<[Session.ID: Row]>([:])

  /// - Parameter flaw: the broken rule, or nil for none.
  init(_ flaw: Flaw?) {
    self.flaw = flaw
  }

  func logIn(at now: Timestamp, keys: SigningKeys) async throws -> RefreshToken {
    let token = RefreshToken(session: .new(), counter: 0, branch: 0, kid: keys.signing.kid)
    rows.withLock { $0[token.session] = Row(rotatedAt: now, kid: token.kid, createdAt: now) }
    return token
  }

  func show(_ token: RefreshToken, at now: Timestamp, keys: SigningKeys) async throws -> RefreshOutcome {
    rows.withLock { rows in
      guard var row = rows[token.session] else { return .ended }
      let outcome = rotate(&row, token, at: now, signing: keys.signing.kid)
      rows[token.session] = row
      if outcome == .theft, flaw == .endsAllSessions {
        for session in rows.keys { rows[session]?.hasEnded = true }
      }
      return outcome
    }
  }

  func restore(_ handout: RefreshModel.Handout) async throws {
    let token = handout.token
    rows.withLock { rows in
      rows[token.session]?.counter = token.counter
      rows[token.session]?.branch = token.branch
      rows[token.session]?.parentBranch = handout.parent?.branch ?? 0
      rows[token.session]?.rotatedAt = handout.time
      rows[token.session]?.kid = token.kid
    }
  }

  private func rotate(
    _ row: inout Row, _ token: RefreshToken, at now: Timestamp, signing kid: String
  ) -> RefreshOutcome {
    let idleEnd = row.rotatedAt.adding(seconds: 60 * 86_400)
    let end = row.createdAt.adding(seconds: 365 * 86_400)
    if row.hasEnded || now >= idleEnd && flaw != .ignoresIdleness || now >= end && flaw != .ignoresAge {
      return .ended
    }
    let current = RefreshToken(session: token.session, counter: row.counter, branch: row.branch, kid: row.kid)
    var (counter, branch, parentBranch) = (token.counter + 1, 0, token.branch)
    if isAccepted(token, current) {
      if flaw == .acceptsEverything { counter = max(counter, row.counter + 1) }
      if flaw == .forgetsParentBranch { parentBranch = 0 }
    } else if token.counter == row.counter - 1, token.branch == row.parentBranch, flaw != .takesRetriesForTheft {
      let window = now.microseconds - row.rotatedAt.microseconds - (flaw == .convergesTooLong ? 1 : 0)
      if flaw == .alwaysConverges || window < 10_000_000 && flaw != .neverConverges {
        return .given(
          RefreshToken(
            session: token.session, counter: row.counter, branch: row.branch,
            kid: flaw == .forgetsKeys ? kid : row.kid))
      }
      (counter, branch) = (row.counter, row.branch + 1)
    } else if flaw == .acceptsGrandparent, token.counter == row.counter - 2 {
      return .given(current)
    } else {
      if flaw == .forgivesTheft { return .ended }
      row.hasEnded = flaw != .recordsNoTheft
      return .theft
    }
    if branch == 0 || flaw != .keepsTimeOfBranches { row.rotatedAt = now }
    row.kid = flaw == .signsWithOldKeys ? token.kid : kid
    (row.counter, row.branch, row.parentBranch) = (counter, branch, parentBranch)
    return .given(RefreshToken(session: token.session, counter: counter, branch: branch, kid: row.kid))
  }

  private func isAccepted(_ token: RefreshToken, _ current: RefreshToken) -> Bool {
    switch flaw {
    case .acceptsEverything: true
    case .acceptsSuperseded: token.counter >= current.counter
    case .takesRestoredForTheft: token.isPlaced(as: current)
    default: !current.isNewer(than: token)
    }
  }
}
