import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Two users act on each other at the same time. The statuses and the final state must be those of some serial order of
/// the acts.
@Suite struct FriendRaceTests {
  /// The relation of the two users at the beginning.
  enum Start: String, CaseIterable, Sendable {
    case strangers
    /// Ana has sent Ben a friend request.
    case asked
    /// Ana sent a friend request, and Ben accepted it.
    case friends
    /// Ana has blocked Ben.
    case blocked
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

private enum Side: String, CaseIterable {
  case ana, ben
}

private enum Verb: String, CaseIterable {
  case send, accept, decline, cancel, unfriend, block, unblock
}

private struct Act: Sendable, CustomStringConvertible {
  let side: Side
  let verb: Verb

  static let all = Side.allCases.flatMap { side in Verb.allCases.map { Act(side: side, verb: $0) } }

  var description: String { "\(side) \(verb)" }
}

private struct Script: Sendable, CustomStringConvertible {
  let start: FriendRaceTests.Start
  let acts: [Act]

  var description: String { "\(start): \(acts)" }
}

// MARK: Possible outcomes

/// A minimal model of the relation of two users.
private struct Standing: Hashable, CustomStringConvertible {
  struct Request: Hashable {
    /// Whether it is the request from the start. Accepting, declining and cancelling act on that one.
    var isNamed: Bool
    var sender: Side
    var status: String
  }

  var areFriends = false
  var requests: [Request] = []
  var blocks: Set<Side> = []

  var pending: Int? { requests.firstIndex { $0.status == "pending" } }

  /// Sorts the requests, because their order has no meaning.
  var settled: Standing {
    var settled = self
    settled.requests.sort { "\($0)" < "\($1)" }
    return settled
  }

  var description: String {
    let requests = requests.map { "\($0.sender) \($0.status)" }
    return "\(areFriends ? "friends" : "no friends") \(requests) blocks: \(blocks.map(\.rawValue).sorted())"
  }

  /// Applies an act, and returns the status of its response.
  mutating func apply(_ act: Act) -> Int {
    switch act.verb {
    case .block:
      guard blocks.insert(act.side).inserted else { return 204 }
      areFriends = false
      if let pending { requests[pending].status = requests[pending].sender == act.side ? "cancelled" : "declined" }
      return 204
    case .unblock:
      blocks.remove(act.side)
      return 204
    case .unfriend:
      guard blocks.isEmpty else { return 404 }
      areFriends = false
      return 204
    case .send:
      guard blocks.isEmpty else { return 404 }
      if areFriends { return 409 }
      guard let pending else {
        requests.append(Request(isNamed: false, sender: act.side, status: "pending"))
        return 201
      }
      if requests[pending].sender != act.side {
        requests[pending].status = "accepted"
        areFriends = true
      }
      return 200
    case .accept: return close(as: "accepted", act)
    case .decline: return close(as: "declined", act)
    case .cancel: return close(as: "cancelled", act)
    }
  }

  private mutating func close(as status: String, _ act: Act) -> Int {
    guard let named = requests.firstIndex(where: \.isNamed), blocks.isEmpty,
      (requests[named].sender == act.side) == (act.verb == .cancel)
    else { return 404 }
    if requests[named].status == status { return 200 }
    guard requests[named].status == "pending" else { return 409 }
    requests[named].status = status
    if status == "accepted" { areFriends = true }
    return 200
  }
}

private struct Outcome: Hashable, CustomStringConvertible {
  let statuses: [Int]
  let end: Standing

  var description: String { "\(statuses), \(end)" }

  /// The possible outcomes of concurrent acts: one for each order.
  static func all(of acts: [Act], from start: Standing) -> Set<Outcome> {
    var outcomes: Set<Outcome> = []
    func go(_ standing: Standing, _ statuses: [Int], _ left: Set<Int>) {
      if left.isEmpty { outcomes.insert(Outcome(statuses: statuses, end: standing.settled)) }
      for index in left {
        var (next, codes) = (standing, statuses)
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
    let named = try await set(script.start)
    let start = try await standing(named)
    let stamps = try await self.stamps()
    let shown = try await shownBlocks()
    let statuses = try await withThrowingTaskGroup(of: (Int, Int).self) { group in
      for (index, act) in script.acts.enumerated() {
        group.addTask { (index, try await perform(act, naming: named)) }
      }
      return try await group.reduce(into: Array(repeating: 0, count: script.acts.count)) { $0[$1.0] = $1.1 }
    }
    let end = try await standing(named)
    let outcome = Outcome(statuses: statuses, end: end)
    let possible = Outcome.all(of: script.acts, from: start)
    #expect(possible.contains(outcome), "\(script): \(outcome), not one of \(possible)")
    for phone in [ana, ben] {
      let friends = try await phone.get("friends")["items"].array.count
      #expect(friends == (end.areFriends ? 1 : 0), "\(script)")
    }
    try await checkStamps(since: stamps, from: start, to: end, blocksShown: shown, script)
  }

  /// - Returns: the request that the acts name, or an unknown id.
  private func set(_ start: FriendRaceTests.Start) async throws -> String {
    try await app.database.execute("DELETE FROM blocks WHERE blocker_id = ANY(\(pair))")
    try await app.database.execute("DELETE FROM friend_requests WHERE sender_id = ANY(\(pair))")
    try await app.database.execute("DELETE FROM friendships WHERE user_a = ANY(\(pair))")
    try await app.database.execute("DELETE FROM notification_queue WHERE recipient_ids && \(pair)")
    switch start {
    case .strangers: break
    case .blocked: try await ana.block(ben)
    case .asked: return try await ana.sendFriendRequest(to: ben)
    case .friends:
      let request = try await ana.sendFriendRequest(to: ben)
      try await ben.accept(request)
      return request
    }
    return FriendRequest.ID.new().description
  }

  private func perform(_ act: Act, naming request: String) async throws -> Int {
    let (me, other) = act.side == .ana ? (ana, ben) : (ben, ana)
    let response =
      switch act.verb {
      case .send: try await me.send("POST", "friend-requests", #"{"receiverId": "\#(other.id)"}"#)
      case .accept: try await me.send("POST", "friend-requests/\(request)/accept")
      case .decline: try await me.send("POST", "friend-requests/\(request)/decline")
      case .cancel: try await me.send("DELETE", "friend-requests/\(request)")
      case .unfriend: try await me.send("DELETE", "friends/\(other.id)")
      case .block: try await me.send("PUT", "blocks/\(other.id)")
      case .unblock: try await me.send("DELETE", "blocks/\(other.id)")
      }
    return response.status
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
      standing.requests.append(
        Standing.Request(isNamed: id.description == named, sender: side(sender), status: try row["status"]))
    }
    let blockers = try await app.database.rows("SELECT blocker_id FROM blocks WHERE blocker_id = ANY(\(pair))")
    for row in blockers {
      let blocker: User.ID = try row["blocker_id"]
      standing.blocks.insert(side(blocker))
    }
    return standing.settled
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
      let (sent, gotten) = (
        [start, end].map { $0.requests.filter { $0.status == "pending" && $0.sender == side } },
        [start, end].map { $0.requests.filter { $0.status == "pending" && $0.sender != side } }
      )
      if sent[0] != sent[1] { expectMoved(.sentFriendRequests, of: side) }
      if gotten[0] != gotten[1] { expectMoved(.friendRequests, of: side) }
    }
  }
}
