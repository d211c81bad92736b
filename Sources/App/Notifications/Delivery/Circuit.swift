/// Keeps sends from a host that does not answer. It opens after repeated time-outs; then one send at a time tries whether
/// the host answers again. Decides only; see ``Dispatcher``.
struct Circuit: Sendable {
  typealias Instant = ContinuousClock.Instant

  /// Time-outs in a row that open it.
  static let maximumTimeouts = 5
  /// It stays open for so long, and longer each time that the host still does not answer.
  static let shortestBreak = Duration.seconds(15)
  static let longestBreak = Duration.seconds(300)

  private var timeouts = 0
  private var openUntil: Instant?
  private var isProbing = false

  /// - Returns: until when the host is left alone; nil if a send may begin, which is then the only one while the circuit
  ///   is half open.
  mutating func admit(at now: Instant) -> Instant? {
    guard let openUntil else { return nil }
    if now < openUntil { return openUntil }
    if isProbing { return now + Self.shortestBreak }
    isProbing = true
    return nil
  }

  /// - Parameter isTimeout: nil if nothing was learned about the host.
  mutating func note(isTimeout: Bool?, at now: Instant) {
    isProbing = false
    guard let isTimeout else { return }
    guard isTimeout else {
      (timeouts, openUntil) = (0, nil)
      return
    }
    timeouts += 1
    guard timeouts >= Self.maximumTimeouts else { return }
    let doublings = min(timeouts - Self.maximumTimeouts, 8)
    openUntil = now + min(Self.shortestBreak * (1 << doublings), Self.longestBreak)
  }

  /// Whether there is nothing to remember.
  var isClosed: Bool { timeouts == 0 && !isProbing }
}
