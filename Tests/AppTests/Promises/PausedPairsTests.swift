import Postgres
import TestSupport
import Testing

@testable import App

/// Pairs of changes in which one decides who sees what the other changes. Each change is held just before its COMMIT
/// while the other one runs or waits. Phones look before, during and after, and no copy that is called fresh may be
/// stale.
@Suite struct PausedPairsTests {
  @Test(arguments: Pair.all)
  func `holding one change of a pair before COMMIT leaves no stale copy fresh`(pair: Pair) async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"], queuesWrites: false) { app in
      let scene = try await PairScene.gather(in: app)
      defer { scene.elsewhere.close() }
      let (history, place) = (History(), Place(app))
      var phones = scene.people.enumerated().map { index, owner in
        CachingPhone(of: owner, at: place, history, seed: UInt64(index))
      }
      func look(isAtRest: Bool = false) async throws {
        for index in phones.indices { try await phones[index].round(isAtRest: isAtRest) }
      }
      try await look()
      let pause = try await Pause(in: app)
      let one = Task { try await pair.first.perform(scene) }
      try await app.waitForLocks(1)
      // Changes that are not committed are invisible.
      try await look(isAtRest: true)
      let isDone = Latch()
      let other = Task {
        defer { isDone.open() }
        return try await pair.second.perform(scene)
      }
      // The second change is done, or waits for the first.
      try await eventually {
        if isDone.isOpen { return true }
        let waiting: Int? = try await app.value(
          "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
        return waiting == 2
      }
      // A worker fans out the committed notices, unless the first change holds their stamps.
      _ = try await FanOut.step(in: app.service)
      try await look()
      try await pause.end()
      let (wasDone, wasOtherDone) = (try await one.value, try await other.value)
      #expect(wasDone)
      #expect(wasOtherDone || pair.first.mayPrevent)
      try await look()
      try await app.fanOut()
      try await look()
      try await look(isAtRest: true)
      #expect(history.violations == [])
      try await app.expectNothingCrossesABlock()
      try await app.expectCounts()
      try await app.takeNotifications()
    }
  }
}

/// Ana, her friend Ben, Cleo with a friend request from Ana, and Dev, a stranger. Ben has the only place of a party,
/// and a visitor with Dev's verified address may come to it.
private struct PairScene: Sendable {
  let app: TestApp
  let ana: Phone
  let ben: Phone
  let cleo: Phone
  let dev: Phone
  let request: String
  let event: String
  let party: String
  let visit: Visit
  /// Dev's own answer to a ball, and a visitor's answer that is proposed to him.
  let ball: String
  let answer: String
  /// For ben, to host the event.
  let offer: String
  /// A pool as of another process. Its writes to an event do not queue behind the writes of the service.
  let elsewhere: Database

  var people: [Phone] { [ana, ben, cleo, dev] }

  static func gather(in app: TestApp) async throws -> PairScene {
    let (ana, ben) = try await app.friends("ana", "ben")
    let (cleo, dev) = (try await app.signUp("cleo"), try await app.signUp("dev"))
    let request = try await ana.sendFriendRequest(to: cleo)
    try await app.database.execute("UPDATE users SET email_verified_at = now() WHERE id = \(dev.userID)")
    let party = try await ana.createEvent("Party", inviting: [ben], capacity: 1)["id"].string ?? ""
    let link = try await ana.createLink(to: party, #"{"kind": "answer"}"#)
    try await ben.answer("going", to: party)
    try await app.takeMails()
    let visit = try await app.confirmedVisit(link.token, "maybe", email: "dev@example.com")
    let ball = try await ana.createEvent("Ball", capacity: 2)["id"].string ?? ""
    let entrance = try await ana.createLink(to: ball, #"{"kind": "answer"}"#)
    _ = try await dev.join(entrance.token)
    try await dev.answer("maybe", to: ball)
    let guest = try await app.confirmedVisit(entrance.token, email: "dev@example.com")
    try await app.service.change {
      try await Visitor.merge(guest.id, at: try #require(Event.ID(ball)), into: dev.userID, in: $0)
    }
    let event = try await ana.createEvent()["id"].string ?? ""
    let offer = try await ana.offerHost(ben, to: event)
    try await app.fanOut()
    return PairScene(
      app: app, ana: ana, ben: ben, cleo: cleo, dev: dev, request: request, event: event, party: party, visit: visit,
      ball: ball, answer: guest.id.description, offer: offer,
      elsewhere: try Database(Database.Configuration(url: app.databaseURL)))
  }
}

extension PausedPairsTests {
  /// Two concurrent changes. The first is held before COMMIT.
  struct Pair: Sendable, CustomStringConvertible {
    enum Act: String, Sendable {
      case rename, putPicture, befriend, invite, create, edit, request, block, friendBlocks, renameGuest
      case visitorAnswers, makeRoom, cancelParty, merge, removeVisitor
      case acceptAnswer, refuseAnswer, removeGuest, editBall, acceptHost, takeBackOffer

      /// Whether the other change may be impossible after this one.
      fileprivate var mayPrevent: Bool {
        [
          .block, .friendBlocks, .cancelParty, .merge, .removeVisitor, .acceptAnswer, .refuseAnswer, .removeGuest,
          .acceptHost, .takeBackOffer,
        ].contains(self)
      }

      /// - Returns: whether the change was made.
      fileprivate func perform(_ scene: PairScene) async throws -> Bool {
        let (ana, ben) = (scene.ana, scene.ben)
        switch self {
        case .rename: return try await ana.send("PATCH", "users/me", #"{"displayName": "Anita"}"#).status == 200
        case .renameGuest: return try await ben.send("PATCH", "users/me", #"{"displayName": "Benno"}"#).status == 200
        case .putPicture: return try await ana.send("PUT", "users/me/picture", Sample.webpText).status == 200
        case .befriend:
          return try await scene.cleo.send("POST", "friend-requests/\(scene.request)/accept").status == 200
        case .create:
          let body = """
            {"title": "Dinner", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC", "inviteeIds": ["\(ben.id)"]}
            """
          return try await ana.send("POST", "events", body).status == 201
        case .edit:
          return try await ana.send("PATCH", "events/\(scene.event)", #"{"title": "Brunch"}"#).status == 200
        case .request:
          return try await ana.send("POST", "friend-requests", #"{"receiverId": "\#(scene.dev.id)"}"#).status == 201
        case .block: return try await scene.dev.send("PUT", "blocks/\(ana.id)").status == 204
        case .friendBlocks: return try await ben.send("PUT", "blocks/\(ana.id)").status == 204
        case .visitorAnswers:
          return try await scene.app.submit(scene.visit.path, ["do": "answer", "answer": "going"]).status == 303
        case .makeRoom: return try await ana.send("PATCH", "events/\(scene.party)", #"{"capacity": 2}"#).status == 200
        case .cancelParty: return try await ana.send("DELETE", "events/\(scene.party)").status == 200
        case .merge:
          let party = try #require(Event.ID(scene.party))
          try await scene.elsewhere.change {
            try await Visitor.merge(scene.visit.id, at: party, into: scene.dev.userID, in: $0)
          }
          return try await scene.app.value("SELECT true FROM invitations WHERE user_id = \(scene.dev.userID)") ?? false
        case .acceptAnswer: return try await scene.dev.send("POST", "proposals/\(scene.answer)/accept").status == 200
        case .refuseAnswer: return try await scene.dev.send("POST", "proposals/\(scene.answer)/decline").status == 204
        case .removeGuest:
          return try await ana.send("DELETE", "events/\(scene.ball)/invitations/\(scene.dev.id)").status == 200
        case .editBall: return try await ana.send("PATCH", "events/\(scene.ball)", #"{"title": "Gala"}"#).status == 200
        case .acceptHost: return try await ben.send("POST", "proposals/\(scene.offer)/accept").status == 200
        case .takeBackOffer:
          return try await ana.send("DELETE", "events/\(scene.event)/hosts/\(ben.id)").status == 204
        case .removeVisitor:
          let path = "events/\(scene.party)/invitations/\(scene.visit.id)"
          return try await ana.send("DELETE", path).status == 200
        case .invite:
          let event = try #require(Event.ID(scene.event))
          do {
            try await scene.elsewhere.change {
              try await Event.invite([ben.userID], to: event, by: ana.userID, in: $0)
            }
            return true
          } catch is AppError {
            return false
          }
        }
      }
    }

    let first: Act
    let second: Act

    var description: String { "\(first), \(second)" }

    static let all: [Pair] = {
      let pairs: [(Act, Act)] = [
        (.rename, .befriend), (.putPicture, .befriend), (.rename, .invite), (.renameGuest, .invite), (.rename, .create),
        (.edit, .invite), (.request, .block), (.invite, .friendBlocks), (.rename, .block), (.rename, .request),
        (.visitorAnswers, .makeRoom), (.visitorAnswers, .cancelParty), (.visitorAnswers, .merge),
        (.visitorAnswers, .removeVisitor), (.merge, .removeVisitor), (.acceptAnswer, .refuseAnswer),
        (.acceptAnswer, .removeGuest), (.acceptAnswer, .editBall), (.acceptAnswer, .block), (.rename, .acceptHost),
        (.edit, .acceptHost), (.acceptHost, .friendBlocks), (.acceptHost, .takeBackOffer),
      ]
      return pairs.flatMap { [Pair(first: $0, second: $1), Pair(first: $1, second: $0)] }
    }()
  }
}
