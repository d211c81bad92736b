import Foundation
import MusterKit
import Postgres
import TestSupport
import Testing

/// Some users with two phones each, on networks that break. They make all kinds of writes and refresh. What their
/// stores claim is compared with what the server sends.
@MainActor final class StoreWorld {
  /// A user, with a session on a network that does not break.
  struct Member {
    let user: TestUser
    let oracle: Oracle
    let phones: [Phone]
  }

  /// The steps so far.
  struct Tally: Sendable {
    var claims = 0
    var undecided = 0
    var falseClaims: [String] = []
    var writes: [String: Int] = [:]
    var refusals: [String: Int] = [:]
    var faults: [String: Int] = [:]
    var refreshes = 0
    var failedRefreshes = 0
    var relaunches = 0
    var outages = 0
    var crashes = 0

    static func += (sum: inout Tally, more: Tally) {
      sum.claims += more.claims
      sum.undecided += more.undecided
      sum.falseClaims += more.falseClaims
      sum.writes.merge(more.writes) { $0 + $1 }
      sum.refusals.merge(more.refusals) { $0 + $1 }
      sum.faults.merge(more.faults) { $0 + $1 }
      sum.refreshes += more.refreshes
      sum.failedRefreshes += more.failedRefreshes
      sum.relaunches += more.relaunches
      sum.outages += more.outages
      sum.crashes += more.crashes
    }
  }

  let server: MusterServer
  let seed: UInt64
  let members: [Member]
  private(set) var tally = Tally()
  /// The network that does not break.
  private let calm: HTTPFaultProxy
  private var random: SeededRandom
  private var number = 0

  var phones: [Phone] { members.flatMap(\.phones) }
  var people: [Person] { members.map { Person(id: $0.user.id, username: $0.user.username, displayName: "") } }

  /// - Parameter wrap: replaces the transport of the first phone.
  init(_ server: MusterServer, seed: UInt64, wrap: (any Transport) -> any Transport = { $0 }) async throws {
    self.server = server
    self.seed = seed
    random = SeededRandom(seed: seed)
    calm = try await HTTPFaultProxy(inFrontOf: server.port)
    var members: [Member] = []
    for (index, name) in ["ana", "ben", "cleo"].enumerated() {
      let user = try await TestUser.register(name, at: calm.url)
      var phones: [Phone] = []
      for place in 0..<2 {
        let number = seed &* 100 &+ UInt64(index * 2 + place)
        let isFirst = index + place == 0
        phones.append(
          try await Phone(of: user, at: server, seed: number, retries: .hasty, wrap: isFirst ? wrap : { $0 }))
      }
      members.append(Member(user: user, oracle: Oracle(client: user.client), phones: phones))
    }
    self.members = members
    for (one, other) in [(0, 1), (0, 2), (1, 2)] { try await members[one].user.befriend(members[other].user) }
  }

  /// Ends all phones.
  func end() async {
    for phone in phones {
      let exchanges = phone.proxy.takeExchanges()
      for exchange in exchanges where exchange.fault != .none {
        tally.faults[String("\(exchange.fault)".prefix { $0 != "(" }), default: 0] += 1
      }
      await phone.end()
    }
    await calm.close()
  }

  // MARK: Rounds

  /// Lets all phones act at once on broken networks, then compares all claims while nothing changes.
  func playRound(actions: Int) async throws {
    for phone in phones { phone.proxy.plan(Self.storm) }
    let acting = members.flatMap { member in
      member.phones.map { phone in
        Task { for _ in 0..<actions { try await act(phone, member) } }
      }
    }
    for task in acting { try await task.value }
    for phone in phones {
      phone.proxy.isOffline = false
      try await phone.catchUp()
      for refusal in phone.store.outbox.refusals {
        tally.refusals[Self.name(of: refusal.reason), default: 0] += 1
        try await phone.store.outbox.dismiss(refusal)
      }
    }
    let quietSince = try await server.quiet()
    // On networks that still break, some succeed.
    let refreshing = phones.map { phone in Task { await refresh(phone) } }
    for task in refreshing { await task.value }
    for member in members { try await compare(member, quietSince: quietSince) }
  }

  /// Kills the server and starts it again while phones may be waiting for responses.
  func crash() async throws {
    let refreshing = phones.map { phone in Task { await refresh(phone) } }
    try await server.kill()
    try await server.start()
    for proxy in phones.map(\.proxy) + [calm] { proxy.target = server.port }
    for task in refreshing { await task.value }
    tally.crashes += 1
  }

  /// Mends all networks. Then each phone must claim everything, and rightly so.
  func settle() async throws {
    for phone in phones {
      phone.proxy.plan { _, _ in .none }
      try await phone.catchUp()
    }
    let quietSince = try await server.quiet()
    for phone in phones {
      try await phone.catchUp()
      try await eventually { try phone.claims.count == CacheCollection.allCases.count }
    }
    for member in members { try await compare(member, quietSince: quietSince) }
  }

  /// The faults of a network: one exchange in five, and most streams.
  private static let storm: HTTPFaultProxy.Plan = { exchange, random in
    let share = Double.random(in: 0...1, using: &random)
    if exchange.isStream { return Int.random(in: 0..<3, using: &random) > 0 ? .cutResponse(share) : .none }
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<4: return .loseRequest
    case 4..<6: return .cutRequest(share)
    case 6..<12: return .loseResponse
    case 12..<16: return .cutResponse(share)
    case 16..<20: return .delay(milliseconds: Int.random(in: 1...60, using: &random))
    default: return .none
    }
  }

  private func act(_ phone: Phone, _ member: Member) async throws {
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<60:
      number += 1
      guard let write = phone.store.randomWrite(number, people, using: &random) else { return }
      do {
        try await phone.store.perform(write)
        tally.writes[write.name, default: 0] += 1
      } catch let error as StoreError {
        Issue.record("\(phone.name): \(write) \(error)")
      }
      await Task.yield()
    case 60..<80: await refresh(phone)
    case 80..<90: try await compare(member)
    case 90..<94:
      try phone.relaunch()
      tally.relaunches += 1
    case 94..<97: phone.store.start()
    default:
      phone.proxy.isOffline.toggle()
      tally.outages += 1
    }
  }

  private func refresh(_ phone: Phone) async {
    tally.refreshes += 1
    do {
      try await phone.store.refresh()
    } catch {
      tally.failedRefreshes += 1
      if error as? MusterError == .loggedOut { Issue.record("\(phone.name) was logged out; seed \(seed)") }
    }
  }

  // MARK: Claims

  /// Compares what a user's phones claim with what the server sends.
  private func compare(_ member: Member, quietSince: Date? = nil) async throws {
    let claims = try member.phones.flatMap { try $0.claims }
    let server = try await member.oracle.copies()
    for claim in claims {
      guard let copy = server[claim.collection] else { continue }
      switch claim.finding(against: copy, quietSince: quietSince) {
      case .holds: tally.claims += 1
      case .undecided: tally.undecided += 1
      case .isFalse(let why):
        tally.claims += 1
        tally.falseClaims.append("seed \(seed): \(why)")
      }
    }
  }

  private static func name(of reason: RefusedWrite.Reason) -> String {
    switch reason {
    case .refused(let problem): problem.type.rawValue
    case .unknown: "unknown"
    case .withoutSubject: "without subject"
    case .damaged: "damaged"
    }
  }
}

extension RetryPolicy {
  /// Gives up early, so that calls fail on networks that break.
  static let hasty = RetryPolicy(maximumAttempts: 2, sleep: sleepBriefly)
}
