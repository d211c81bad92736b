/// Keeps sends away from a host that does not respond. It opens after repeated timeouts; then one send at a time probes
/// whether the host responds again. Decides only; see ``DeliveryState``.
struct Circuit: Sendable {
  typealias Instant = ContinuousClock.Instant

  /// Consecutive timeouts that open it.
  static let maximumTimeouts = 5
  /// How long it stays open at first. The break doubles each time the host still does not respond.
  static let shortestBreak = Duration.seconds(15)
  static let longestBreak = Duration.seconds(300)

  private var timeouts = 0
  private var openUntil: Instant?
  private var isProbing = false

  /// - Returns: the end of the break; nil if a send may begin. While the circuit is half open, only that send may.
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

  /// Whether it has no state worth keeping.
  var isClosed: Bool { timeouts == 0 && !isProbing }
}
