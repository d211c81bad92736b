/// How many sends may be in flight at once: by channel, by recipient and by host, so that none of them takes the slots of
/// the others. Decides only; see ``Dispatcher``.
struct Capacity: Sendable {
  typealias Instant = ContinuousClock.Instant

  enum Channel: String, Hashable, Sendable {
    case ios, android, webhook, log, mail, apple
  }

  enum Key: Hashable, Sendable {
    case channel(Channel)
    /// Of one user on one channel: their webhooks do not take the slots of their phone.
    case recipient(User.ID, Channel)
    /// A webhook's host and port.
    case host(String)
  }

  /// Sends in flight to the devices of one user.
  static let perRecipient = 4
  /// Sends in flight to one host. As many connections to it are open at most.
  static let perHost = 8
  /// Rows that wait for their turn are due again after so many seconds at the latest.
  private static let longestWait = 60.0

  /// Sends in flight on one channel.
  let perChannel: Int
  private var inFlight: [Key: Int] = [:]
  /// How long the last send took, in seconds.
  private var pace: [Key: Double] = [:]
  /// When the next row that has to wait may expect its turn.
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
  /// - Parameter time: for how long the send was in flight; nil if it was not begun.
  mutating func free(_ keys: [Key], after time: Duration?) {
    for key in keys {
      let left = inFlight[key, default: 1] - 1
      inFlight[key] = left > 0 ? left : nil
      if let time { pace[key] = left > 0 ? time / .seconds(1) : nil }
    }
  }

  /// How many seconds a row should wait that finds no room, by how long its predecessors take. Each is called once for
  /// a row that is given back, and moves the turn of the next.
  mutating func wait(for keys: [Key], now: Instant) -> Double {
    guard let full = keys.first(where: { isFull($0) }) else { return 0 }
    let interval = max(pace[full] ?? 1, 0.01) / Double(limit(full))
    let own = max(turn[full] ?? now, now)
    let seconds = (own - now) / .seconds(1)
    guard seconds < Self.longestWait else { return Self.longestWait * Double.random(in: 0.8...1) }
    turn[full] = own + .seconds(interval)
    if turn.count > 10_000 { turn = turn.filter { $0.value > now } }
    return seconds + interval
  }

  /// Whether rows wait already for one of these keys: the next one need not try.
  func isQueued(_ keys: [Key], now: Instant) -> Bool {
    keys.contains { isFull($0) && (turn[$0].map { $0 > now } ?? false) }
  }
}
