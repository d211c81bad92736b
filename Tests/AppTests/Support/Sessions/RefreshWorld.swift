import Postgres
import TestSupport

@testable import App

/// Two devices of one user, with a network that loses and repeats requests, a thief, a moving clock, changing keys, and
/// a database that is restored. The seed determines all events, except the order of concurrent ones.
///
/// Phones are honest: they keep the newest token that they received, and present it again after a lost response. They
/// must never be logged out, unless a thief has acted, or the network has repeated a request so late that it looks like
/// theft.
struct RefreshWorld<Machine: RefreshMachine> {
  private struct Device {
    var model: RefreshModel
    /// The token that the phone presents next.
    var held: RefreshToken
    /// The latest tokens that the phone has presented. The network may repeat them.
    var sent: [RefreshToken] = []
    /// The token that a thief presents next.
    var loot: RefreshToken?
    /// Whether a thief has acted, or something that looks like theft has happened.
    var isForfeit = false
    var hasEnded = false

    init(_ first: RefreshToken, at now: Timestamp) {
      model = RefreshModel(first, at: now)
      held = first
    }

    mutating func receive(_ outcome: RefreshOutcome) {
      if let token = outcome.token, token.isNewer(than: held) { held = token }
    }
  }

  private enum Party { case phone, network, thief }

  private struct Presentation {
    let device: Int
    let token: RefreshToken
    let party: Party
  }

  private struct Exchange {
    let shown: Presentation
    let outcome: RefreshOutcome
  }

  private let machine: Machine
  private let seed: UInt64
  private let hasThieves: Bool
  /// Whether results are compared with the model. If false, only false logouts and unseen thefts are violations.
  private let isCompared: Bool
  private var random: SeededRandom
  private var devices: [Device] = []
  private var clock = Timestamp(microseconds: 1_767_225_600_000_000)
  private var keys: SigningKeys
  private var trace: [String] = []
  private(set) var report = RefreshReport()

  private static var keyTexts: [String] {
    ["a", "b", "c"].map { "\($0):" + String(repeating: $0, count: 42) + "A=" }
  }

  /// - Parameter seed: with an even seed, there are no thieves and no repetitions that look like theft.
  init(_ machine: Machine, seed: UInt64, isCompared: Bool = true) throws {
    self.machine = machine
    self.seed = seed
    self.isCompared = isCompared
    hasThieves = seed % 2 == 1
    random = SeededRandom(seed: seed)
    keys = try SigningKeys(Self.keyTexts.joined(separator: ","))
  }

  /// - Throws: ``RefreshViolation``, with all events that led to it.
  mutating func run(steps: Int) async throws {
    for _ in 0..<2 { devices.append(try await logIn()) }
    for _ in 0..<steps { try await step() }
    try await settle()
  }

  private mutating func step() async throws {
    let device = roll(0..<devices.count)
    guard !devices[device].hasEnded else {
      if chance(0.3) { devices[device] = try await logIn() } else { try await refresh(device) }
      return
    }
    switch roll(0..<100) {
    case ..<45: try await refresh(device)
    case ..<59: try await refresh(device, arriving: 0)
    case ..<67:
      let times = roll(2..<4)
      try await refresh(device, times: times, arriving: 0.6)
    case ..<73: try await repeatLate(device)
    case ..<78: try await steal(device)
    case ..<81: try await crowd()
    case ..<97: try await moveClock(device)
    case ..<99: try exchangeKeys()
    default: try await restoreBackup(device)
    }
  }

  // MARK: Events

  private func logIn() async throws -> Device {
    Device(try await machine.logIn(at: clock, keys: keys), at: clock)
  }

  /// The phone presents its token, several times at once if `times` is greater than 1. Each response arrives with a
  /// probability.
  private mutating func refresh(_ device: Int, times: Int = 1, arriving: Double = 1) async throws {
    let shown = Array(repeating: shownByPhone(device), count: times)
    for outcome in try await show(shown) {
      if chance(arriving) { devices[device].receive(outcome) }
    }
  }

  private mutating func shownByPhone(_ device: Int) -> Presentation {
    devices[device].sent.append(devices[device].held)
    if devices[device].sent.count > 8 { devices[device].sent.removeFirst() }
    return Presentation(device: device, token: devices[device].held, party: .phone)
  }

  /// The network repeats an earlier request of the phone. The response is lost.
  private mutating func repeatLate(_ device: Int) async throws {
    let sent = devices[device].sent
    guard let token = chance(0.8) ? sent.last : sent.randomElement(using: &random) else {
      return try await refresh(device)
    }
    var model = devices[device].model
    let isHarmful =
      switch model.show(token, at: clock, signing: keys.signing.kid).verdict {
      case .theft: true
      // The phone's token is superseded.
      case .branched: token != devices[device].held
      case .accepted, .again, .ended: false
      }
    if isHarmful {
      guard hasThieves else { return try await refresh(device) }
      devices[device].isForfeit = true
    }
    _ = try await show([Presentation(device: device, token: token, party: .network)])
  }

  /// A thief copies a token, or presents a stolen one and mostly gets the response.
  private mutating func steal(_ device: Int) async throws {
    guard hasThieves else { return try await refresh(device) }
    guard let loot = devices[device].loot, chance(0.7) else {
      devices[device].loot = chance(0.7) ? devices[device].held : devices[device].model.current.token
      note("a thief copies \(devices[device].loot.map(Self.words) ?? "")")
      return
    }
    try await showLoot(loot, of: device, arriving: 0.8)
  }

  private mutating func showLoot(_ loot: RefreshToken, of device: Int, arriving: Double = 1) async throws {
    devices[device].isForfeit = true
    let outcomes = try await show([Presentation(device: device, token: loot, party: .thief)])
    if chance(arriving), let token = outcomes[0].token { devices[device].loot = token }
  }

  /// Both phones present their tokens at once. A thief or a late repetition competes with one of them.
  private mutating func crowd() async throws {
    var shown: [Presentation] = []
    for device in devices.indices where !devices[device].hasEnded { shown.append(shownByPhone(device)) }
    if hasThieves, let device = shown.first?.device {
      devices[device].isForfeit = true
      let late = devices[device].sent.randomElement(using: &random) ?? devices[device].held
      let loot = devices[device].loot
      shown.append(Presentation(device: device, token: loot ?? late, party: loot == nil ? .network : .thief))
    }
    let outcomes = try await show(shown)
    for (presentation, outcome) in zip(shown, outcomes) {
      switch presentation.party {
      case .phone: devices[presentation.device].receive(outcome)
      case .thief: devices[presentation.device].loot = outcome.token ?? presentation.token
      case .network: break
      }
    }
  }

  /// Moves the clock by anything from a microsecond to months, often to a limit of the rules, and sometimes back.
  private mutating func moveClock(_ device: Int) async throws {
    let (second, hour, day): (Int64, Int64, Int64) = (1_000_000, 3_600_000_000, 86_400_000_000)
    let edge = Int64(roll(-1..<2))
    let model = devices[device].model
    let before = clock
    switch roll(0..<40) {
    case ..<10: clock.microseconds += Int64.random(in: 1..<second, using: &random)
    case ..<19: clock.microseconds += Int64.random(in: second..<9 * second, using: &random)
    case ..<25: clock = max(clock, model.convergenceEnd.adding(microseconds: edge))
    case ..<31: clock.microseconds += Int64.random(in: 10 * second..<hour, using: &random)
    case ..<35: clock.microseconds -= Int64.random(in: 1..<5 * second, using: &random)
    case ..<38: clock.microseconds += Int64.random(in: hour..<20 * day, using: &random)
    case ..<39: clock = max(clock, model.current.time.adding(microseconds: RefreshModel.idle + edge))
    default: return try await growOld(device, until: model.start.adding(microseconds: RefreshModel.age + edge))
    }
    note("the clock moves by \(clock.microseconds - before.microseconds) us")
  }

  /// The phone refreshes just before the idle limit, until a year has passed.
  private mutating func growOld(_ device: Int, until end: Timestamp) async throws {
    // Eight times are enough, and limit the steps with a flawed machine.
    for _ in 0..<8 where clock < end && !devices[device].hasEnded {
      let awake = devices[device].model.current.time.adding(microseconds: RefreshModel.idle - 1)
      clock = max(clock, min(end, awake))
      note("the clock moves to just before the idle limit")
      try await refresh(device)
    }
  }

  private mutating func exchangeKeys() throws {
    keys = try SigningKeys(Self.keyTexts.shuffled(using: &random).joined(separator: ","))
    note("\(keys.signing.kid) is the new signing key")
  }

  private mutating func restoreBackup(_ device: Int) async throws {
    let lost = roll(0..<6)
    devices[device].model.forget(lost)
    let handout = devices[device].model.current
    try await machine.restore(handout)
    note("the database is restored to \(Self.words(handout.token))")
  }

  /// Phones and thieves take turns while they have tokens. A thief must be detected, and a phone without one must stay
  /// logged in.
  private mutating func settle() async throws {
    for device in devices.indices {
      let limit = clock.adding(microseconds: 100_000_000)
      guard !devices[device].hasEnded, !devices[device].model.isExpired(at: limit) else { continue }
      for _ in 0..<3 {
        clock.microseconds += 11_000_000
        try await refresh(device)
        guard let loot = devices[device].loot else { continue }
        clock.microseconds += 11_000_000
        try await showLoot(loot, of: device)
      }
      if devices[device].loot != nil, !devices[device].hasEnded {
        throw violation(.unseenTheft, "a phone and a thief share a session")
      }
    }
  }

  // MARK: Checks

  /// Presents tokens, several at the same time, and checks the results.
  private mutating func show(_ shown: [Presentation]) async throws -> [RefreshOutcome] {
    let outcomes = try await outcomes(of: shown.map(\.token))
    report.presentations += shown.count
    let exchanges = zip(shown, outcomes).map { Exchange(shown: $0, outcome: $1) }
    for exchange in exchanges {
      let (shown, outcome) = (exchange.shown, exchange.outcome)
      let result = outcome.token.map(Self.words) ?? "\(outcome)"
      note("device \(shown.device): the \(shown.party) shows \(Self.words(shown.token)): \(result)")
      if outcome == .theft { report.revoked.append(shown.token.session) }
    }
    if shown.count > 1 { note("the last \(shown.count) at once") }
    for device in devices.indices {
      try judge(device, exchanges.filter { $0.shown.device == device })
    }
    return outcomes
  }

  private func outcomes(of tokens: [RefreshToken]) async throws -> [RefreshOutcome] {
    let (machine, clock, keys) = (machine, clock, keys)
    if tokens.count == 1 { return [try await machine.show(tokens[0], at: clock, keys: keys)] }
    return try await withThrowingTaskGroup(of: (index: Int, outcome: RefreshOutcome).self) { group in
      for (index, token) in tokens.enumerated() {
        group.addTask { (index, try await machine.show(token, at: clock, keys: keys)) }
      }
      var outcomes = Array(repeating: RefreshOutcome.ended, count: tokens.count)
      for try await (index, outcome) in group { outcomes[index] = outcome }
      return outcomes
    }
  }

  /// Checks the results of one session's concurrent requests: some serial order must explain them.
  private mutating func judge(_ device: Int, _ seen: [Exchange]) throws {
    let wasRefused = seen.contains { $0.outcome.token == nil }
    let isEntitled =
      !devices[device].hasEnded && !devices[device].isForfeit && !devices[device].model.isExpired(at: clock)
    if isEntitled, seen.contains(where: { $0.shown.party == .phone && $0.outcome.token == nil }) {
      throw violation(.falseLogout, "device \(device) is logged out without a reason")
    }
    if let (model, verdicts) = explanation(of: seen, by: devices[device].model) {
      devices[device].model = model
      for verdict in verdicts { report.verdicts[verdict, default: 0] += 1 }
    } else if isCompared {
      throw violation(.unlikeTheModel, "device \(device): no order of the requests explains the results")
    }
    if wasRefused { devices[device].hasEnded = true }
  }

  private func explanation(
    of seen: [Exchange], by model: RefreshModel
  ) -> (RefreshModel, [RefreshModel.Verdict])? {
    for order in Self.orders(Array(seen.indices)) {
      var model = model
      var verdicts: [RefreshModel.Verdict] = []
      let fits = order.allSatisfy { index in
        let (verdict, outcome) = model.show(seen[index].shown.token, at: clock, signing: keys.signing.kid)
        verdicts.append(verdict)
        return outcome == seen[index].outcome
      }
      if fits { return (model, verdicts) }
    }
    return nil
  }

  private static func orders(_ items: [Int]) -> [[Int]] {
    guard items.count > 1 else { return [items] }
    return items.flatMap { first in orders(items.filter { $0 != first }).map { [first] + $0 } }
  }

  // MARK: The trace

  private mutating func note(_ event: String) {
    trace.append(event)
  }

  private func violation(_ kind: RefreshViolation.Kind, _ what: String) -> RefreshViolation {
    RefreshViolation(
      kind: kind, description: "seed \(seed): \(kind): \(what)\n" + trace.joined(separator: "\n"))
  }

  private static func words(_ token: RefreshToken) -> String {
    "(\(token.counter),\(token.branch))\(token.kid)"
  }

  private mutating func roll(_ range: Range<Int>) -> Int {
    Int.random(in: range, using: &random)
  }

  private mutating func chance(_ probability: Double) -> Bool {
    Double.random(in: 0..<1, using: &random) < probability
  }
}

/// Sessions and their refresh tokens, with correct or flawed rules.
protocol RefreshMachine: Sendable {
  func logIn(at now: Timestamp, keys: SigningKeys) async throws -> RefreshToken
  func show(_ token: RefreshToken, at now: Timestamp, keys: SigningKeys) async throws -> RefreshOutcome
  /// Restores the database to the time when this token was issued.
  func restore(_ handout: RefreshModel.Handout) async throws
}

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

/// A violation of the contract.
struct RefreshViolation: Error, CustomStringConvertible {
  enum Kind: Sendable { case falseLogout, unseenTheft, unlikeTheModel }

  let kind: Kind
  let description: String
}
