@testable import App

/// The events in one world, or in several.
struct RefreshReport: Sendable {
  var presentations = 0
  var verdicts: [RefreshModel.Verdict: Int] = [:]
  /// The sessions that ended by theft, once for each report of it.
  var revoked: [Session.ID] = []

  mutating func add(_ other: RefreshReport) {
    presentations += other.presentations
    verdicts.merge(other.verdicts) { $0 + $1 }
    revoked += other.revoked
  }
}
