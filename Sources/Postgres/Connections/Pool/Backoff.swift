/// The pause after a failed attempt to connect. During it, other callers get the same error without a new attempt.
struct Backoff {
  private var until: ContinuousClock.Instant?
  private(set) var delay = Duration.milliseconds(50)
  private var failure: (any Error)?

  var isWaiting: Bool {
    until.map { ContinuousClock.now < $0 } ?? false
  }

  /// - Throws: the last failure, while it is too early to try again.
  func check() throws {
    if let until, let failure, ContinuousClock.now < until { throw failure }
  }

  /// Counts attempts that fail during the same pause only once.
  mutating func note(_ error: any Error) {
    failure = error
    guard !isWaiting else { return }
    until = .now + delay * Double.random(in: 0.8...1.2)
    delay = min(delay * 2, .seconds(1))
  }

  mutating func reset() {
    self = Backoff()
  }
}
