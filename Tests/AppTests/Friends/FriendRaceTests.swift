import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Two users act on each other at the same time. The statuses and the final state must be those of some serial order of
/// the acts, as ``Model`` has them.
@Suite struct FriendRaceTests {
  /// The relation of the two users at the beginning.
  enum Start: String, CaseIterable, Sendable {
    case strangers, asked, friends, blocked

    /// The acts that lead to it.
    fileprivate var acts: [Act] {
      switch self {
      case .strangers: []
      case .asked: [Act(.ana, .send)]
      case .friends: [Act(.ana, .send), Act(.ben, .accept)]
      case .blocked: [Act(.ana, .block)]
      }
    }
  }

  @Test(arguments: Start.allCases)
  func `any two concurrent acts end as in some serial order`(start: Start) async throws {
    var scripts: [Script] = []
    for (index, one) in Act.all.enumerated() {
      for other in Act.all[index...] {
        scripts += Array(repeating: Script(start: start, acts: [one, other]), count: 3)
      }
    }
    try await run(scripts)
  }

  @Test func `any three concurrent acts end as in some serial order`() async throws {
    var random = SeededRandom(seed: 5)
    let count = testsAreLong ? 5000 : 400
    var scripts: [Script] = []
    for _ in 0..<count {
      let start = Start.allCases[Int.random(in: 0..<Start.allCases.count, using: &random)]
      let acts = (0..<3).map { _ in Act.all[Int.random(in: 0..<Act.all.count, using: &random)] }
      scripts.append(Script(start: start, acts: acts))
    }
    try await run(scripts)
  }

  /// Plays all scripts, several at once. Each pair of users plays one script at a time.
  private func run(_ scripts: [Script]) async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"], queuesWrites: false) { app in
      let stages = 6
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<stages {
          group.addTask {
            let stage = try await Stage(number, in: app)
            for index in stride(from: number, to: scripts.count, by: stages) { try await stage.play(scripts[index]) }
          }
        }
        try await group.waitForAll()
      }
      try await app.expectNothingCrossesABlock()
      try await app.takeNotifications()
    }
  }
}

// MARK: Acts

/// The users, as the model numbers them.
private enum Side: Int, CaseIterable {
  case ana, ben

  var other: Side { self == .ana ? .ben : .ana }
}

private enum Verb: String, CaseIterable {
  case send, accept, decline, cancel, unfriend, block, unblock
}

private struct Act: Sendable, CustomStringConvertible {
  let side: Side
  let verb: Verb

  static let all = Side.allCases.flatMap { side in Verb.allCases.map { Act(side, $0) } }

  init(_ side: Side, _ verb: Verb) { (self.side, self.verb) = (side, verb) }

  var description: String { "\(side) \(verb)" }
}

private struct Script: Sendable, CustomStringConvertible {
  let start: FriendRaceTests.Start
  let acts: [Act]

  var description: String { "\(start): \(acts)" }
}

// MARK: Possible outcomes

/// The relation of the two users.
private struct Standing: Hashable, CustomStringConvertible {
  var areFriends = false
  /// One line for each, such as `ana pending`. The request from the start, which accepting, declining and cancelling act
  /// on, is marked.
  private(set) var requests: [String] = []
  var blocks: Set<Side> = []

  /// The order has no meaning.
  mutating func note(_ status: String, by sender: Side, isNamed: Bool) {
    requests.append("\(sender) \(status)\(isNamed ? " from the start" : "")")
    requests.sort()
  }

  func pending(from side: Side) -> [String] { requests.filter { $0.hasPrefix("\(side) pending") } }

  var description: String { "\(areFriends ? "friends" : "no friends") \(requests) blocks: \(blocks)" }
}

/// Two users in the model, and the request that their acts name.
private struct Pair {
  private var model = Model()
  private var named: Int?

  init(_ ana: Phone, _ ben: Phone) {
    for phone in [ana, ben] {
      let person = Model.Person(id: phone.id, email: "", username: "", displayName: "", isVerified: true)
      model.register(person)
    }
  }

  var standing: Standing {
    var standing = Standing(areFriends: model.areFriends(0, 1))
    for (index, request) in model.requests.enumerated() {
      standing.note(request.status, by: request.sender == 0 ? .ana : .ben, isNamed: index == named)
    }
    standing.blocks = Set(model.blocks.compactMap { Side(rawValue: $0.by) })
    return standing
  }

  /// From now on, acts name the request that was sent, if there is one.
  mutating func begin() {
    named = model.requests.indices.first
  }

  /// - Returns: the status of the response.
  mutating func apply(_ act: Act) -> Int {
    let (me, other) = (act.side.rawValue, act.side.other.rawValue)
    switch act.verb {
    case .send: return model.send("", from: me, to: other)
    case .accept: return named.map { model.accept($0, by: me) } ?? 404
    case .decline: return named.map { model.decline($0, by: me) } ?? 404
    case .cancel: return named.map { model.cancel($0, by: me) } ?? 404
    case .unfriend: return model.unfriend(other, by: me)
    case .block: return model.block(other, by: me)
    case .unblock: return model.unblock(other, by: me)
    }
  }
}

private struct Outcome: Hashable, CustomStringConvertible {
  let statuses: [Int]
  let end: Standing

  var description: String { "\(statuses), \(end)" }

  /// The possible outcomes of concurrent acts: one for each order.
  static func all(of acts: [Act], from start: Pair) -> Set<Outcome> {
    var outcomes: Set<Outcome> = []
    func go(_ pair: Pair, _ statuses: [Int], _ left: Set<Int>) {
      if left.isEmpty { outcomes.insert(Outcome(statuses: statuses, end: pair.standing)) }
      for index in left {
        var (next, codes) = (pair, statuses)
        codes[index] = next.apply(acts[index])
        go(next, codes, left.subtracting([index]))
      }
    }
    go(start, Array(repeating: 0, count: acts.count), Set(acts.indices))
    return outcomes
  }
}

// MARK: Running the acts

private struct Stage: Sendable {
  let app: TestApp
  let ana: Phone
  let ben: Phone

  private var pair: [User.ID] { [ana.userID, ben.userID] }

  init(_ number: Int, in app: TestApp) async throws {
    self.app = app
    ana = try await app.signUp("ana\(number)")
    ben = try await app.signUp("ben\(number)")
  }

  func play(_ script: Script) async throws {
    let (model, named) = try await set(script.start)
    let start = try await standing(named)
    #expect(start == model.standing, "\(script)")
    let stamps = try await self.stamps()
    let shown = try await shownBlocks()
    let statuses = try await withThrowingTaskGroup(of: (Int, Int).self) { group in
      for (index, act) in script.acts.enumerated() {
        group.addTask { (index, try await perform(act, naming: named).status) }
      }
      return try await group.reduce(into: Array(repeating: 0, count: script.acts.count)) { $0[$1.0] = $1.1 }
    }
    let end = try await standing(named)
    let outcome = Outcome(statuses: statuses, end: end)
    let possible = Outcome.all(of: script.acts, from: model)
    #expect(possible.contains(outcome), "\(script): \(outcome), not one of \(possible)")
    for phone in [ana, ben] {
      let friends = try await phone.get("friends")["items"].array.count
      #expect(friends == (end.areFriends ? 1 : 0), "\(script)")
    }
    try await checkStamps(since: stamps, from: start, to: end, blocksShown: shown, script)
  }

  /// - Returns: the pair in the model, and the request that the acts name, or an unknown id.
  private func set(_ start: FriendRaceTests.Start) async throws -> (Pair, named: String) {
    try await app.database.batch(
      "DELETE FROM blocks WHERE blocker_id = ANY(\(pair))",
      "DELETE FROM friend_requests WHERE sender_id = ANY(\(pair))",
      "DELETE FROM friendships WHERE user_a = ANY(\(pair))",
      "DELETE FROM notification_queue WHERE recipient_ids && \(pair)")
    var model = Pair(ana, ben)
    var named: String?
    for act in start.acts {
      let response = try await perform(act, naming: named ?? "")
      let right = model.apply(act)
      #expect(response.status == right, "\(start): \(response.body)")
      named = named ?? response.json["id"].string
      model.begin()
    }
    return (model, named ?? FriendRequest.ID.new().description)
  }

  private func perform(_ act: Act, naming request: String) async throws -> APIResponse {
    let (me, other) = act.side == .ana ? (ana, ben) : (ben, ana)
    switch act.verb {
    case .send: return try await me.send("POST", "friend-requests", #"{"receiverId": "\#(other.id)"}"#)
    case .accept: return try await me.send("POST", "friend-requests/\(request)/accept")
    case .decline: return try await me.send("POST", "friend-requests/\(request)/decline")
    case .cancel: return try await me.send("DELETE", "friend-requests/\(request)")
    case .unfriend: return try await me.send("DELETE", "friends/\(other.id)")
    case .block: return try await me.send("PUT", "blocks/\(other.id)")
    case .unblock: return try await me.send("DELETE", "blocks/\(other.id)")
    }
  }

  private func side(_ user: User.ID) -> Side { user == ana.userID ? .ana : .ben }

  private func standing(_ named: String) async throws -> Standing {
    var standing = Standing()
    let friendships: Int? = try await app.value("SELECT count(*) FROM friendships WHERE user_a = ANY(\(pair))")
    standing.areFriends = friendships == 1
    let requests = try await app.database.rows(
      "SELECT id, sender_id, status FROM friend_requests WHERE sender_id = ANY(\(pair))")
    for row in requests {
      let (id, sender): (FriendRequest.ID, User.ID) = (try row["id"], try row["sender_id"])
      standing.note(try row["status"], by: side(sender), isNamed: id.description == named)
    }
    let blockers = try await app.database.rows("SELECT blocker_id FROM blocks WHERE blocker_id = ANY(\(pair))")
    standing.blocks = Set(try blockers.map { side(try $0["blocker_id"]) })
    return standing
  }

  private func stamps() async throws -> [Side: Stamps] {
    let reads = Stamps.reads(in: app.service)
    return [
      .ana: try Stamps(try #require(try await reads.value(for: ana.userID))),
      .ben: try Stamps(try #require(try await reads.value(for: ben.userID))),
    ]
  }

  /// The users whose list of blocks shows the other. Of two mutual blocks, only the older one is shown.
  private func shownBlocks() async throws -> Set<Side> {
    let rows = try await app.database.rows("SELECT blocker_id FROM shown_blocks WHERE blocker_id = ANY(\(pair))")
    return Set(try rows.map { side(try $0["blocker_id"]) })
  }

  /// Expects a new stamp for each list that shows something else at the end.
  private func checkStamps(
    since before: [Side: Stamps], from start: Standing, to end: Standing,
    blocksShown shownBefore: Set<Side>, _ script: Script
  ) async throws {
    let (after, shownAfter) = (try await stamps(), try await shownBlocks())
    func expectMoved(_ collection: App.Collection, of side: Side) {
      let (old, new) = (before[side]?[collection], after[side]?[collection])
      #expect(old != new, "\(script): \(collection) of \(side)")
    }
    for side in Side.allCases {
      if start.areFriends != end.areFriends { expectMoved(.friends, of: side) }
      if shownBefore.contains(side) != shownAfter.contains(side) { expectMoved(.blocks, of: side) }
      if start.pending(from: side) != end.pending(from: side) { expectMoved(.sentFriendRequests, of: side) }
      if start.pending(from: side.other) != end.pending(from: side.other) { expectMoved(.friendRequests, of: side) }
    }
  }
}
