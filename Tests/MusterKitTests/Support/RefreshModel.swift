import Foundation
import MusterKit

/// The service's handling of refresh tokens: contract and guide, in memory, with a clock of its own.
struct RefreshModel: Sendable {
  struct Token: Hashable, Sendable {
    var counter: Int
    var branch: Int

    var text: String { "\(counter).\(branch)" }

    init(counter: Int, branch: Int) {
      self.counter = counter
      self.branch = branch
    }

    init?(_ text: String) {
      let parts = text.split(separator: ".").compactMap { Int($0) }
      guard parts.count == 2 else { return nil }
      self.init(counter: parts[0], branch: parts[1])
    }
  }

  /// Seconds in which a repeated refresh gets the same token.
  private static let grace = 10.0

  private(set) var current = Token(counter: 1, branch: 0)
  private(set) var isStolen = false
  var now = 0.0
  private var parentBranch = 0
  private var rotatedAt = -1000.0
  private var issued = 0

  /// - Returns: the new refresh token and a number for the access token; nil if the session has ended.
  mutating func refresh(_ shown: Token) -> (Token, Int)? {
    guard !isStolen else { return nil }
    if shown == current {
      parentBranch = shown.branch
      current = Token(counter: shown.counter + 1, branch: 0)
      rotatedAt = now
    } else if shown == Token(counter: current.counter - 1, branch: parentBranch) {
      if now - rotatedAt > Self.grace {
        current.branch += 1
        rotatedAt = now
      }
    } else {
      isStolen = true
      return nil
    }
    issued += 1
    return (current, issued)
  }
}
