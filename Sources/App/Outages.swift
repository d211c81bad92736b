/// Decides which of many similar failures deserve a log line: the first, then one every ten seconds with a count of
/// those since, and the end of the outage.
struct Outages {
  struct Ended: Equatable {
    let problem: String
    let failures: Int
    let duration: Duration
  }

  private struct Outage {
    let began: ContinuousClock.Instant
    var last: ContinuousClock.Instant
    var logged: ContinuousClock.Instant
    var unlogged = 0
    var failures = 1
  }

  private static let interval = Duration.seconds(10)
  /// The time without a failure before a success counts as the end: failures and successes may alternate.
  private static let quiet = Duration.seconds(1)

  private var known: [String: Outage] = [:]

  var isEmpty: Bool { known.isEmpty }

  /// - Returns: how many failures the line stands for, including this one; nil for no line.
  mutating func failed(_ problem: String, at now: ContinuousClock.Instant) -> Int? {
    guard var outage = known[problem] else {
      known[problem] = Outage(began: now, last: now, logged: now)
      return 1
    }
    outage.last = now
    outage.failures += 1
    outage.unlogged += 1
    defer { known[problem] = outage }
    guard now - outage.logged >= Self.interval else { return nil }
    defer { (outage.logged, outage.unlogged) = (now, 0) }
    return outage.unlogged
  }

  /// - Returns: the outages that have ended.
  mutating func succeeded(at now: ContinuousClock.Instant) -> [Ended] {
    let over = known.filter { now - $0.value.last >= Self.quiet }
    for problem in over.keys { known[problem] = nil }
    return over.map { Ended(problem: $0, failures: $1.failures, duration: $1.last - $1.began) }
      .sorted { $0.problem < $1.problem }
  }
}
