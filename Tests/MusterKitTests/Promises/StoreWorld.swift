import Foundation
import Postgres
import TestSupport
import Testing

@testable import MusterKit

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
    /// Writes that were lost, or that happened twice.
    var wrongWrites: [String] = []
    /// Newer states that a write has replaced.
    var overwritten: [String] = []
    /// The replaced values that were judged.
    var replacements = 0
    var writes: [String: Int] = [:]
    var refusals: [String: Int] = [:]
    var faults: [String: Int] = [:]
    var refreshes = 0
    var failedRefreshes = 0
    var relaunches = 0
    var outages = 0
    var crashes = 0
    var clockJumps = 0
    var weekends = 0
    var fullDisks = 0
    var writesWithoutRoom = 0
    var brokenFiles = 0
    /// Right claims about past events.
    var pastClaims = 0

    /// The kinds of acts and troubles without which a run says little, and which it has not met.
    var missing: [String] {
      let troubles = ["loseRequest", "loseResponse", "cutResponse", "cutRequest", "delay"]
      let counts =
        RandomWrites.Kind.allCases.map { ($0.rawValue, writes[$0.rawValue, default: 0]) }
        + troubles.map { ($0, faults[$0, default: 0]) } + [
          ("failed refreshes", failedRefreshes), ("relaunches", relaunches), ("outages", outages), ("crashes", crashes),
          ("clock jumps", clockJumps), ("weekends", weekends), ("full disks", fullDisks),
          ("writes without room", writesWithoutRoom), ("broken files", brokenFiles),
          ("damaged writes", refusals["damaged", default: 0]), ("replacements", replacements),
          ("past events", pastClaims),
        ]
      return counts.filter { $0.1 == 0 }.map(\.0)
    }

    static func += (sum: inout Tally, more: Tally) {
      sum.claims += more.claims
      sum.undecided += more.undecided
      sum.falseClaims += more.falseClaims
      sum.wrongWrites += more.wrongWrites
      sum.overwritten += more.overwritten
      sum.replacements += more.replacements
      sum.writes.merge(more.writes) { $0 + $1 }
      sum.refusals.merge(more.refusals) { $0 + $1 }
      sum.faults.merge(more.faults) { $0 + $1 }
      sum.refreshes += more.refreshes
      sum.failedRefreshes += more.failedRefreshes
      sum.relaunches += more.relaunches
      sum.outages += more.outages
      sum.crashes += more.crashes
      sum.clockJumps += more.clockJumps
      sum.weekends += more.weekends
      sum.fullDisks += more.fullDisks
      sum.writesWithoutRoom += more.writesWithoutRoom
      sum.brokenFiles += more.brokenFiles
      sum.pastClaims += more.pastClaims
    }
  }

  let server: MusterServer
  let seed: UInt64
  let members: [Member]
  private(set) var tally = Tally()
  /// The network that does not break.
  private let calm: HTTPFaultProxy
  private var random: SeededRandom
  private var writes = RandomWrites()
  private var ledger = WriteLedger()
  /// The events that are open, by the names of the phones.
  private var screens: [String: OpenedEvent] = [:]

  var phones: [Phone] { members.flatMap(\.phones) }
  var people: [Person] { members.map { Person(id: $0.user.id, username: $0.user.username, displayName: "") } }

  /// - Parameter wrap: replaces the transport of the first phone.
  init(_ server: MusterServer, seed: UInt64, wrap: (any Transport) -> any Transport = { $0 }) async throws {
    self.server = server
    self.seed = seed
    random = SeededRandom(seed: seed)
    calm = try await HTTPFaultProxy(inFrontOf: server.port)
    try await StateHistory.keep(on: server)
    var members: [Member] = []
    for (index, name) in ["ana", "ben", "cleo"].enumerated() {
      let user = try await TestUser.register(name, at: calm.url)
      var phones: [Phone] = []
      for place in 0..<2 {
        let number = seed &* 100 &+ UInt64(index * 2 + place)
        let isFirst = index + place == 0
        phones.append(
          try await Phone(of: user, at: server, seed: number, retries: .hasty) {
            isFirst ? wrap($0) : $0
          })
      }
      members.append(Member(user: user, oracle: Oracle(client: user.client), phones: phones))
    }
    self.members = members
    // Requests of users without a proven address would be filtered.
    let ids = members.map(\.user.id.rawValue)
    let _: Int = try await server.value(
      """
      WITH verified AS (UPDATE users SET email_verified_at = now() WHERE id = ANY(\(ids)) RETURNING 1)
      SELECT count(*) FROM verified
      """)
    for other in [1, 2] { try await members[0].user.befriend(members[other].user) }
    try await members[1].user.client.friends.requests.send(to: members[2].user.id)
  }

  /// Ends all phones.
  func end() async {
    for phone in phones {
      takeExchanges(of: phone)
      await phone.end()
    }
    await calm.close()
  }

  private func takeExchanges(of phone: Phone) {
    let exchanges = phone.proxy.takeExchanges()
    ledger.note(exchanges)
    for exchange in exchanges where exchange.fault != .none {
      tally.faults[String("\(exchange.fault)".prefix { $0 != "(" }), default: 0] += 1
    }
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
    try await server.endEvents(where: "random() < 0.1")
    for task in acting { try await task.value }
    if Int.random(in: 0..<4, using: &random) == 0 { try await passWeekend() }
    try await onAllPhones { phone in
      phone.proxy.isOffline = false
      phone.isFull.withLock { $0 = false }
      try await phone.catchUp()
      for refusal in phone.store.outbox.refusals {
        self.tally.refusals[Self.name(of: refusal.reason), default: 0] += 1
        self.ledger.refuse(refusal)
        try await phone.store.outbox.dismiss(refusal)
      }
    }
    let quietSince = try await server.quiet()
    // On networks that still break, some succeed.
    try await onAllPhones { await self.refresh($0) }
    for member in members { try await compare(member, quietSince: quietSince) }
  }

  private func onAllPhones(_ act: @escaping @MainActor (Phone) async throws -> Void) async throws {
    let acting = phones.map { phone in Task { try await act(phone) } }
    for task in acting { try await task.value }
  }

  /// Lets two and a half days pass, during which no phone has a network and all apps end. The service forgets its keys.
  private func passWeekend() async throws {
    for phone in phones {
      phone.proxy.isOffline = true
      phone.store.stop()
      _ = try? await phone.store.refresh()
      try await write(on: phone)
      let pending = phone.store.outbox.pending.map(\.id)
      if let id = pending.randomElement(using: &random), Int.random(in: 0..<3, using: &random) == 0 {
        try breakFile(of: id, on: phone)
      }
      if Int.random(in: 0..<3, using: &random) == 0 { try breakCopy(on: phone) }
      try ageAttempts(on: phone)
      try relaunch(phone)
    }
    _ = try await server.quiet()
    try await server.forgetKeys()
    ledger.forgetKeys()
    let _: Int = try await server.value(
      """
      WITH aged AS (
        UPDATE invitations SET answered_at = answered_at - interval '\(unescaped: "\(Int(Self.weekend))") seconds'
        WHERE answered_at IS NOT NULL RETURNING 1
      )
      SELECT count(*) FROM aged
      """)
    tally.weekends += 1
  }

  /// Seconds.
  private static let weekend: TimeInterval = 60 * 3600

  /// Moves all attempts to send a write into the past, as if a weekend had passed since.
  private func ageAttempts(on phone: Phone) throws {
    let folder = phone.store.folder.file("outbox")
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
      let file = folder.appending(path: name)
      let json = try? JSONSerialization.jsonObject(with: try Data(contentsOf: file))
      guard var record = json as? [String: Any], let time = record["attemptedAt"] as? Double else { continue }
      record["attemptedAt"] = time - Self.weekend
      try JSONSerialization.data(withJSONObject: record).write(to: file)
    }
  }

  /// Damages the file of a write that is not sent.
  private func breakFile(of id: OutboxRecord.ID, on phone: Phone) throws {
    let folder = phone.store.folder.file("outbox")
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where name.contains(id.wire) {
      try breakFile(folder.appending(path: name))
    }
  }

  private func breakCopy(on phone: Phone) throws {
    let folder = phone.store.folder.url
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    let files = names.filter { $0.hasSuffix(".copy") || $0.hasSuffix(".json") }
    if let name = files.randomElement(using: &random) { try breakFile(folder.appending(path: name)) }
  }

  private func breakFile(_ file: URL) throws {
    let data = try Data(contentsOf: file)
    try data.prefix(Int.random(in: 0..<data.count, using: &random)).write(to: file)
    tally.brokenFiles += 1
  }

  private func setClock(of phone: Phone) {
    let units: [TimeInterval] = [60, 3600, 86_400, 365 * 86_400]
    let unit = units.randomElement(using: &random) ?? 60
    phone.clock.set(ahead: unit * Double.random(in: -10...10, using: &random))
    tally.clockJumps += 1
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
    try await onAllPhones { phone in
      phone.proxy.plan { _, _ in .none }
      try await phone.catchUp()
    }
    let quietSince = try await server.quiet()
    try await onAllPhones { phone in
      try await phone.catchUp()
      try await eventually { try phone.claimsAll }
    }
    for member in members { try await compare(member, quietSince: quietSince) }
    try await judgeWrites()
  }

  /// Compares the writes with what the service has.
  private func judgeWrites() async throws {
    for phone in phones {
      #expect(phone.store.outbox.pending.isEmpty && phone.store.outbox.refusals.isEmpty, "seed \(seed)")
      takeExchanges(of: phone)
    }
    var created: [String: Int] = [:]
    for member in members {
      var cursor: String?
      repeat {
        let page = try await member.oracle.client.events.list(limit: 100, cursor: cursor)
        for event in page.items where event.myRole == .creator {
          if let mark = event.location?.name { created[mark, default: 0] += 1 }
        }
        cursor = page.nextCursor
      } while cursor != nil
      for try await event in member.oracle.client.events.pastPages(limit: 100).items where event.myRole == .creator {
        if let mark = event.location?.name { created[mark, default: 0] += 1 }
      }
    }
    let history = try await StateHistory.entries(of: server)
    tally.wrongWrites += ledger.findings(created: created, in: history).map { "seed \(seed): \($0)" }
    tally.overwritten += ledger.overwritten(in: history).map { "seed \(seed): \($0)" }
    tally.replacements += history.count(where: ledger.knows)
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
    case 0..<56:
      try await write(on: phone)
      await Task.yield()
    case 56..<60:
      let isFull = Bool.random(using: &random)
      phone.isFull.withLock { $0 = isFull }
      if isFull { tally.fullDisks += 1 }
    case 60..<64: setClock(of: phone)
    case 64..<68: await meet(member)
    case 68..<80: await refresh(phone)
    case 80..<90: try await compare(member)
    case 90..<94:
      try relaunch(phone)
      tally.relaunches += 1
    case 94..<97: phone.store.start()
    default:
      phone.proxy.isOffline.toggle()
      tally.outages += 1
    }
  }

  private func relaunch(_ phone: Phone) throws {
    screens[phone.name] = nil
    try phone.relaunch()
  }

  /// Acts that need a network: one user accepts an offer to host, and asks to come to an event of another one, who
  /// opens it.
  private func meet(_ member: Member) async {
    do {
      let client = member.oracle.client
      if let offer = try await client.proposals.list().items.first { try await client.proposals.accept(offer.id) }
      let others = members.filter { $0.user.id != member.user.id }
      guard let host = others.randomElement(using: &random), let phone = host.phones.randomElement(using: &random)
      else { return }
      let events = try await host.oracle.client.events.list(limit: 100).items
      let open = events.filter { $0.myRole == .creator && $0.status == .scheduled }
      guard let event = open.randomElement(using: &random) else { return }
      let link = try await host.oracle.client.events.links.create(ShareLinkDraft(kind: .answer), for: event.id)
      if let token = link.url.flatMap(ShareLink.token) { try await client.links.join(using: token) }
      let screen = phone.store.opened(event.id)
      screens[phone.name] = screen
      try await screen.refresh()
    } catch {
      // One has blocked the other, or the phone has no network.
    }
  }

  private func write(on phone: Phone) async throws {
    // What a user sees is what is loaded.
    await phone.store.load()
    let view = RandomWrites.View(store: phone.store, screen: screens[phone.name], people: people)
    guard let write = writes.next(for: view, using: &random) else { return }
    let replaced = write.replacements(in: phone.store)
    do {
      ledger.take(try await phone.store.perform(write), on: phone.name, replacing: replaced)
      tally.writes[write.name, default: 0] += 1
    } catch StoreError.disk(let reason) {
      ledger.note(replaced, on: phone.name, by: nil)
      #expect(phone.isFull.withLock { $0 }, "\(phone.name): \(write) \(reason)")
      tally.writesWithoutRoom += 1
    } catch let error as StoreError {
      Issue.record("\(phone.name): \(write) \(error)")
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
    let (server, past) = (try await member.oracle.copies(), try await member.oracle.pastEvents())
    for claim in claims {
      guard let copy = claim.collection.map({ server[$0] }) ?? past else { continue }
      switch claim.finding(against: copy, quietSince: quietSince) {
      case .holds:
        tally.claims += 1
        if claim.collection == nil, !claim.items.isEmpty { tally.pastClaims += 1 }
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
    case .superseded: "superseded"
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
