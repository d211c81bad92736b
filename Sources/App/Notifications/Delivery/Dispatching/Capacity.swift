/// Limits the sends in flight by channel, by recipient and by host, so that none of them takes the slots of the others.
/// Decides only; see ``DeliveryState``.
struct Capacity: Sendable {
  typealias Instant = ContinuousClock.Instant

  enum Channel: String, Hashable, Sendable {
    case ios, android, webhook, log, mail, apple
  }

  enum Key: Hashable, Sendable {
    case channel(Channel)
    /// One user on one channel: their webhooks do not take the slots of their phone.
    case recipient(User.ID, Channel)
    /// A webhook's host and port.
    case host(String)
  }

  /// Sends in flight to one user on one channel.
  static let perRecipient = 4
  /// Sends in flight to one host, and therefore connections to it.
  static let perHost = 8
  /// Seconds after which a row that waits for a slot is due again at the latest.
  private static let maximumWait = 60.0

  /// Sends in flight on one channel.
  let perChannel: Int
  private var inFlight: [Key: Int] = [:]
  /// How long the last send took, in seconds.
  private var pace: [Key: Double] = [:]
  /// When the next row that waits can expect a slot.
  private var turn: [Key: Instant] = [:]

  init(perChannel: Int) {
    self.perChannel = perChannel
  }

  private func limit(_ key: Key) -> Int {
    switch key {
    // Mails and Apple's revocations go to one host.
    case .channel(.mail), .channel(.apple): min(perChannel, Self.perHost)
    case .channel: perChannel
    case .recipient: Self.perRecipient
    case .host: Self.perHost
    }
  }

  private func isFull(_ key: Key) -> Bool { inFlight[key, default: 0] >= limit(key) }

  func hasRoom(for keys: [Key]) -> Bool { !keys.contains { isFull($0) } }

  /// Takes a slot under each key.
  mutating func take(_ keys: [Key]) {
    for key in keys { inFlight[key, default: 0] += 1 }
  }

  /// Frees what ``take(_:)`` took.
  ///
  /// - Parameter time: how long the send was in flight; nil if it did not begin.
  mutating func free(_ keys: [Key], after time: Duration?) {
    for key in keys {
      let left = inFlight[key, default: 1] - 1
      inFlight[key] = left > 0 ? left : nil
      if let time { pace[key] = left > 0 ? time / .seconds(1) : nil }
    }
  }

  /// The seconds that a row without a slot should wait, based on the duration of earlier sends. Call it once for each
  /// row that is given back: each call moves the turn of the next row.
  mutating func wait(for keys: [Key], now: Instant, using random: inout some RandomNumberGenerator) -> Double {
    guard let full = keys.first(where: { isFull($0) }) else { return 0 }
    let interval = max(pace[full] ?? 1, 0.01) / Double(limit(full))
    let own = max(turn[full] ?? now, now)
    let seconds = (own - now) / .seconds(1)
    guard seconds < Self.maximumWait else { return Self.maximumWait * Double.random(in: 0.8...1, using: &random) }
    turn[full] = own + .seconds(interval)
    if turn.count > 10_000 { turn = turn.filter { $0.value > now } }
    return seconds + interval
  }

  /// Whether rows already wait for one of these keys, so that the next one need not try.
  func isQueued(_ keys: [Key], now: Instant) -> Bool {
    keys.contains { isFull($0) && (turn[$0].map { $0 > now } ?? false) }
  }
}
