import Foundation
import Synchronization
import TestSupport
import Testing

@testable import App

/// All that the phones received, and all violations of the cache's promise in it.
final class History: Sendable {
  struct Tally: Sendable {
    /// Verdicts on one collection.
    var validations = 0
    var fresh = 0
    /// Lists whose items came with a validation.
    var broughtAlong = 0
    /// Lists that were brought up to date by what had changed.
    var changed = 0
    /// GETs with the response 304.
    var unchanged = 0
    /// The number of times that each verb was done.
    var done: [RandomVerb: Int] = [:]
  }

  private struct Key: Hashable {
    let user: String
    let collection: App.Collection
    let stamp: String
  }

  private struct State {
    /// A hash of the items that came with a stamp.
    var seen: [Key: Int] = [:]
    var violations: [String] = []
    var tally = Tally()
    var isEnded = false
  }

  private let state = Mutex(State())
  /// The number of verbs that random people do.
  private static let verbs = Set(RandomVerb.all { $0.together }).count

  private let goal: Int
  private let endsAtViolation: Bool
  private let hasEveryVerb: Bool

  /// - Parameters:
  ///   - goal: the number of validations after which the history is over.
  ///   - hasEveryVerb: whether it continues until every verb was done, for at most five times as many validations.
  init(goal: Int = .max, endsAtViolation: Bool = false, hasEveryVerb: Bool = false) {
    self.goal = goal
    self.hasEveryVerb = hasEveryVerb
    self.endsAtViolation = endsAtViolation
  }

  var violations: [String] { state.withLock { $0.violations } }
  var tally: Tally { state.withLock { $0.tally } }

  var isOver: Bool {
    state.withLock {
      if $0.isEnded || endsAtViolation && !$0.violations.isEmpty { return true }
      let (validations, done) = ($0.tally.validations, $0.tally.done.count)
      return validations >= goal
        && (!hasEveryVerb || done == Self.verbs || validations / 5 >= goal)
    }
  }

  func end() {
    state.withLock { $0.isEnded = true }
  }

  func count(_ change: (inout Tally) -> Void) {
    state.withLock { change(&$0.tally) }
  }

  func report(_ violation: String) {
    state.withLock { if $0.violations.count < 20 { $0.violations.append(violation) } }
  }

  /// Checks that a stamp always comes with the same items, for every reader, and for GETs and validations alike.
  func note(_ copy: HeldCopy, of collection: App.Collection, of user: Phone) {
    let key = Key(user: user.id, collection: collection, stamp: copy.stamp)
    let hash = copy.items.hashValue
    let isOther = state.withLock { state -> Bool in
      if let known = state.seen[key] { return known != hash }
      state.seen[key] = hash
      return false
    }
    if isOther {
      report(
        "\(collection) of \(user.username): \(copy.stamp) has come with other items: \(copy.items.prefix(2000))")
    }
  }
}
