import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Creations with an id that the client has made: they can be repeated at any age.
@Suite struct GivenIDTests {
  /// The three requests that take an id.
  private enum Creation: String, CaseIterable {
    case event, copy, request

    /// - Parameter more: what differs from the first request.
    func send(_ id: String, by phone: Phone, _ scene: Scene, key: String? = nil, more: Bool = false) async throws
      -> APIResponse
    {
      let headers = key.map { [("Idempotency-Key", $0)] } ?? []
      let title = more ? "Dinner" : "Picnic"
      let time = more ? "2031-05-01T18:00:00Z" : "2030-05-01T18:00:00Z"
      return switch self {
      case .event:
        try await phone.send(
          "POST", "events",
          #"{"id": "\#(id)", "title": "\#(title)", "startTime": "\#(time)", "timeZone": "UTC", "inviteeIds": ["\#(scene.ben.id)"]}"#,
          headers: headers)
      case .copy:
        try await phone.send(
          "POST", "events/\(scene.original)/duplicate",
          #"{"id": "\#(id)", "startTime": "\#(time)", "invite": \#(!more)}"#, headers: headers)
      case .request:
        try await phone.send(
          "POST", "friend-requests", #"{"id": "\#(id)", "receiverId": "\#((more ? scene.ben : scene.dev).id)"}"#,
          headers: headers)
      }
    }
  }

  /// Ana and Emre are friends of Ben's, and host an event together. Dev is a stranger.
  private struct Scene: Sendable {
    let app: TestApp
    let ana: Phone
    let ben: Phone
    let dev: Phone
    let emre: Phone
    let original: String

    init(in app: TestApp) async throws {
      self.app = app
      (ana, ben) = try await app.friends("ana", "ben")
      (dev, emre) = (try await app.signUp("dev"), try await app.signUp("emre"))
      try await app.befriend(ana, emre)
      try await app.befriend(emre, ben)
      original = try await ana.createEvent("Brunch", inviting: [ben])["id"].string ?? ""
      try await ana.addHost(emre, to: original)
      try await app.takeNotifications()
    }
  }

  private static func newID() -> String { Event.ID.new().description }

  @Test(arguments: Creation.allCases)
  private func `a repeated creation gets what is there, and changes nothing`(_ creation: Creation) async throws {
    try await TestApp.run { app in
      let scene = try await Scene(in: app)
      let (ana, ben, id) = (scene.ana, scene.ben, Self.newID())
      // Printed in lower case, like all ids.
      let first = try await creation.send(id.uppercased(), by: ana, scene)
      #expect(first.status == 201 && first.json["id"].string == id, "\(first.body)")
      #expect(try await app.takeNotifications().count == 1)
      func expectRepeats(_ sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let path = creation == .request ? "friend-requests/\(id)" : "events/\(id)"
        let (current, before) = (try await ana.get(path), try await app.contents())
        for more in [false, true] {
          let again = try await creation.send(id, by: ana, scene, more: more)
          #expect(again.status == 200 && again.json == current, "\(again.body)", sourceLocation: sourceLocation)
          #expect(again.header("Location") == first.header("Location"), sourceLocation: sourceLocation)
        }
        #expect(try await app.contents() == before, sourceLocation: sourceLocation)
      }
      try await expectRepeats()
      if creation == .request {
        try await scene.dev.decline(id)
        try await expectRepeats()
        // The sender may ask again, with another id.
        #expect(try await creation.send(Self.newID(), by: ana, scene).status == 201)
        try await expectRepeats()
      } else {
        try await ana.edit(id, #"{"title": "Supper"}"#)
        // The guest of the first request is a friend no longer.
        try await ana.unfriend(ben)
        try await expectRepeats()
        // The right to copy the original has ended.
        try await ana.cancelEvent(scene.original)
        try await ana.cancelEvent(id)
        try await expectRepeats()
      }
      try await app.takeNotifications()
    }
  }

  @Test func `a copy is repeated after its creator has lost the original`() async throws {
    try await TestApp.run { app in
      let scene = try await Scene(in: app)
      let id = Self.newID()
      #expect(try await Creation.copy.send(id, by: scene.emre, scene).status == 201)
      try await scene.ana.block(scene.emre)
      #expect(try await Creation.copy.send(Self.newID(), by: scene.emre, scene).status == 404)
      let again = try await Creation.copy.send(id, by: scene.emre, scene)
      #expect(again.status == 200 && again.json["id"].string == id, "\(again.body)")
      try await app.takeNotifications()
    }
  }

  @Test(arguments: Creation.allCases)
  private func `an id of another user's item is taken, for users who see the item and for others`(_ creation: Creation)
    async throws
  {
    try await TestApp.run { app in
      let scene = try await Scene(in: app)
      let id = Self.newID()
      #expect(try await creation.send(id, by: scene.ana, scene).status == 201)
      try await app.takeNotifications()
      let before = try await app.contents()
      // Ben is a guest of the events, and Dev has got the request.
      var problems: Set<String> = []
      for other in [scene.ben, scene.dev, scene.emre] {
        let refused =
          creation == .request
          ? try await other.send("POST", "friend-requests", #"{"id": "\#(id)", "receiverId": "\#(scene.ana.id)"}"#)
          : try await other.send(
            "POST", "events",
            #"{"id": "\#(id)", "title": "Trap", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC"}"#)
        #expect(refused.status == 409 && refused.problem == "id-taken", "\(refused.body)")
        problems.insert(refused.json["detail"].string ?? "")
      }
      #expect(problems.count == 1)
      #expect(try await app.contents() == before)
    }
  }

  @Test func `an id must be a UUID of version 7, whatever its time`() async throws {
    try await TestApp.run { app in
      let scene = try await Scene(in: app)
      let bad = [
        "", "nonsense", "01900000-0000-7000-8000", "9f0e6d3e-3ad0-4f4e-9d93-2f1f8d1f5b1f",
        "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "01900000-0000-7000-c000-000000000001", "01900000-0000-7000-0000-000000000001",
      ]
      for creation in Creation.allCases {
        for id in bad {
          let refused = try await creation.send(id, by: scene.ana, scene)
          #expect(refused.status == 422 && refused.badFields == ["id"], "\(creation) \(id): \(refused.body)")
        }
        let number = try await scene.ana.send(
          "POST", "friend-requests", #"{"id": 7, "receiverId": "\#(scene.dev.id)"}"#)
        #expect(number.badFields == ["id"])
      }
      for id in ["00000000-0000-7000-8000-000000000000", "ffffffff-ffff-7fff-bfff-ffffffffffff"] {
        #expect(try await Creation.event.send(id, by: scene.ana, scene).status == 201)
        #expect(try await Creation.event.send(id, by: scene.ana, scene).status == 200)
      }
      // Null is no id.
      let plain = try await scene.ana.send(
        "POST", "friend-requests", #"{"id": null, "receiverId": "\#(scene.dev.id)"}"#)
      #expect(plain.status == 201)
      try await app.takeNotifications()
    }
  }

  @Test(arguments: Creation.allCases, [true, false])
  private func `of creations with one id that run at once, one creates`(
    _ creation: Creation, areOfOneUser: Bool
  ) async throws {
    try await TestApp.run(["MUSTER_RATE_LIMITS": "off"], queuesWrites: false) { app in
      let scene = try await Scene(in: app)
      for _ in 1...10 {
        let id = Self.newID()
        let statuses = try await app.race(6) { index in
          try await creation.send(id, by: areOfOneUser || index % 2 == 0 ? scene.ana : scene.emre, scene)
        }
        if areOfOneUser {
          #expect(statuses == [201: 1, 200: 5])
        } else {
          #expect(statuses == [201: 1, 200: 2, 409: 3])
        }
        #expect(try await app.takeNotifications().count == 1)
        try await app.database.execute("DELETE FROM friend_requests WHERE receiver_id = \(scene.dev.userID)")
      }
    }
  }

  /// The end of the first of two creations, which is paused just before its COMMIT.
  @Test(arguments: Creation.allCases, [true, false])
  private func `a creation waits for the one with its id that has not committed`(
    _ creation: Creation, isOfOneUser: Bool
  ) async throws {
    try await TestApp.run(queuesWrites: false) { app in
      let scene = try await Scene(in: app)
      let id = Self.newID()
      let pause = try await Pause(in: app)
      let one = Task { try await creation.send(id, by: scene.ana, scene) }
      try await app.waitForLocks(1)
      let other = Task { try await creation.send(id, by: isOfOneUser ? scene.ana : scene.emre, scene) }
      try await app.waitForLocks(2)
      try await pause.end()
      #expect(try await one.value.status == 201)
      let second = try await other.value
      #expect(second.status == (isOfOneUser ? 200 : 409), "\(second.body)")
      #expect(second.json[isOfOneUser ? "id" : "type"].string == (isOfOneUser ? id : "id-taken"))
      #expect(try await app.takeNotifications().count == 1)
    }
  }

  @Test func `an id and an Idempotency-Key work together`() async throws {
    try await TestApp.run { app in
      let scene = try await Scene(in: app)
      for creation in Creation.allCases {
        let id = Self.newID()
        let first = try await creation.send(id, by: scene.ana, scene, key: "\(creation)-1")
        #expect(first.status == 201)
        if creation != .request { try await scene.ana.edit(id, #"{"title": "Supper"}"#) }
        let replayed = try await creation.send(id, by: scene.ana, scene, key: "\(creation)-1")
        #expect(replayed.status == 201 && replayed.body == first.body)
        #expect(replayed.header("Idempotent-Replayed") == "true")
        // Another key is another request, with the same item.
        for isReplayed in [false, true] {
          let other = try await creation.send(id, by: scene.ana, scene, key: "\(creation)-2", more: true)
          #expect(other.status == 200 && other.json["id"].string == id, "\(other.body)")
          #expect((other.header("Idempotent-Replayed") == "true") == isReplayed)
          #expect(creation == .request || other.json["title"].string == "Supper")
        }
        let reused = try await creation.send(Self.newID(), by: scene.ana, scene, key: "\(creation)-1")
        #expect(reused.status == 422 && reused.problem == "idempotency-key-reused")
        let taken = try await creation.send(id, by: scene.emre, scene, key: "\(creation)-1")
        #expect(taken.status == 409 && taken.problem == "id-taken")
      }
      try await app.takeNotifications()
    }
  }

  // MARK: Friend requests

  @Test func `a request that meets the caller's own has that one's id, and one that meets the other's keeps its id`()
    async throws
  {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      func ask(_ one: Phone, _ other: Phone, _ id: String) async throws -> APIResponse {
        try await one.send("POST", "friend-requests", #"{"id": "\#(id)", "receiverId": "\#(other.id)"}"#)
      }
      let (one, two, three) = (Self.newID(), Self.newID(), Self.newID())
      #expect(try await ask(ana, ben, one).status == 201)
      // Ana's second phone also asks.
      let pending = try await ask(ana, ben, two)
      #expect(pending.status == 200 && pending.json["id"].string == one)
      #expect(try await ana.send("GET", "friend-requests/\(two)").status == 404)
      let crossing = try await ask(ben, ana, three)
      #expect(crossing.status == 200 && crossing.json["id"].string == three)
      #expect(crossing.json["status"].string == "accepted")
      #expect(crossing.json["sender"]["id"].string == ben.id && crossing.json["receiver"]["id"].string == ana.id)
      // Both requests are there, and neither can be taken back.
      for (phone, other, id) in [(ana, ben, one), (ben, ana, three)] {
        let again = try await ask(phone, other, id)
        #expect(again.status == 200 && again.json["id"].string == id && again.json["status"].string == "accepted")
        #expect(try await phone.get("friend-requests/\(id)") == again.json)
        #expect(try await phone.send("DELETE", "friend-requests/\(id)").problem == "friend-request-closed")
      }
      #expect(try await ask(ben, ana, Self.newID()).problem == "already-friends")
      #expect(try await app.value("SELECT count(*) FROM friend_requests") == 2)
      #expect(try await app.value("SELECT count(*) FROM friendships") == 1)
      #expect(
        try await app.takeNotifications().map(\.type) == ["friend-request", "friend-accepted", "friend-accepted"])
    }
  }

  @Test func `of two requests with ids that cross at once, one meets the other`() async throws {
    try await TestApp.run(["MUSTER_RATE_LIMITS": "off"], queuesWrites: false) { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      for _ in 1...10 {
        let ids = [Self.newID(), Self.newID()]
        let statuses = try await app.race(6) { index in
          let (sender, receiver) = index % 2 == 0 ? (ana, ben) : (ben, ana)
          return try await sender.send(
            "POST", "friend-requests", #"{"id": "\#(ids[index % 2])", "receiverId": "\#(receiver.id)"}"#)
        }
        #expect(statuses == [201: 1, 200: 5])
        for (phone, id) in zip([ana, ben], ids) {
          #expect(try await phone.get("friend-requests/\(id)")["status"].string == "accepted")
        }
        try await app.takeNotifications()
        try await ana.unfriend(ben)
      }
    }
  }

  // MARK: What an id tells

  /// Things of two users who have vanished for Ana: one has deleted the account, the other one has blocked her.
  @Test func `an id does not tell whether its maker's account is gone`() async throws {
    try await TestApp.run { app in
      let (ana, emre) = try await app.friends("ana", "emre")
      var ids: [[String]] = []
      for name in ["ben", "cleo"] {
        let other = try await app.signUp(name)
        var known = [try await other.sendFriendRequest(to: ana)]
        try await ana.decline(known[0])
        known.append(try await ana.sendFriendRequest(to: other))
        try await other.accept(known[1])
        let event = try await other.createEvent("Picnic", inviting: [ana])["id"].string ?? ""
        _ = try await other.send("DELETE", "events/\(event)/invitations/\(ana.id)")
        known.append(event)
        ids.append(known)
        if name == "ben" { try await other.deleteAccount() } else { try await other.block(ana) }
      }
      try await app.takeNotifications()
      /// The calls that name the id, with their outcome.
      func probe(_ id: String) async throws -> [String] {
        let event = #""title": "Trap", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC""#
        let original = try await ana.createEvent()["id"].string ?? ""
        var outcomes: [String] = []
        for (method, path, body) in [
          ("POST", "friend-requests", #"{"id": "\#(id)", "receiverId": "\#(emre.id)"}"#),
          ("POST", "friend-requests", #"{"id": "\#(id)", "receiverId": "\#(User.ID.new())"}"#),
          ("POST", "events", #"{"id": "\#(id)", \#(event)}"#),
          ("POST", "events/\(original)/duplicate", #"{"id": "\#(id)", "startTime": "2030-05-01T18:00:00Z"}"#),
          ("POST", "events/\(Event.ID.new())/duplicate", #"{"id": "\#(id)", "startTime": "2030-05-01T18:00:00Z"}"#),
          ("GET", "friend-requests/\(id)", nil), ("DELETE", "friend-requests/\(id)", nil),
          ("POST", "friend-requests/\(id)/accept", nil), ("GET", "events/\(id)", nil), ("DELETE", "events/\(id)", nil),
        ] as [(String, String, String?)] {
          let response = try await ana.send(method, path, body)
          outcomes.append("\(method) \(response.status) \(response.problem ?? "")")
        }
        return outcomes
      }
      for (gone, blocked) in zip(ids[0], ids[1]) {
        let outcomes = try await probe(gone)
        #expect(try await probe(blocked) == outcomes)
        #expect(outcomes.contains { $0.hasSuffix("id-taken") || $0.hasSuffix("user-not-found") })
      }
      #expect(try await app.value("SELECT count(*) FROM spent_ids") == 3)
      #expect(try await app.value("SELECT count(*) FROM spent_ids WHERE owner_id = \(ana.userID)") == 1)
      try await ana.deleteAccount()
      #expect(try await app.value("SELECT count(*) FROM spent_ids WHERE owner_id = \(ana.userID)") == 0)
      try await app.takeNotifications()
    }
  }

  @Test func `an event with the id of a user does not share the line of that user's notices`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let (cleo, dev) = (try await app.signUp("cleo"), try await app.signUp("dev"))
      try await cleo.sendFriendRequest(to: dev)
      let trap = try await ana.send(
        "POST", "events",
        #"""
        {"id": "\#(cleo.id)", "title": "Trap", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC",
         "inviteeIds": ["\#(ben.id)"]}
        """#)
      #expect(trap.status == 201, "\(trap.body)")
      #expect(try await app.value("SELECT count(DISTINCT subject_id) FROM notification_queue") == 2)
      // Both still reach their recipients, and go with the account.
      try await cleo.deleteAccount()
      #expect(try await app.takeNotifications().map(\.type) == ["event-invited"])
    }
  }

  @Test func `a repeated request is filtered as it was, and a block hides it`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana", isVerified: false), try await app.signUp("ben"))
      let (id, unknown) = (Self.newID(), User.ID.new())
      func ask(_ receiver: String) async throws -> APIResponse {
        try await ana.send("POST", "friend-requests", #"{"id": "\#(id)", "receiverId": "\#(receiver)"}"#)
      }
      #expect(try await ask(ben.id).json["filtered"].bool == true)
      let again = try await ask(unknown.description)
      #expect(again.status == 200 && again.json["filtered"].bool == true)
      #expect(try await app.takeNotifications() == [])
      try await ben.block(ana)
      for receiver in [ben.id, unknown.description] {
        let hidden = try await ask(receiver)
        #expect(hidden.status == 404 && hidden.problem == "user-not-found", "\(hidden.body)")
      }
      // The block has ended the request. Unblocking does not revive it.
      try await ben.unblock(ana)
      let ended = try await ask(ben.id)
      #expect(ended.status == 200 && ended.json["status"].string == "declined")
      #expect(try await app.takeNotifications() == [])
    }
  }

  @Test func `ids with false times do not deceive the limit of a day`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let others = try await app.crowd(52, around: try await app.signUp("host"))
      // The requests of yesterday have the ids of a far future.
      for other in others.prefix(51) {
        try await app.database.execute(
          """
          INSERT INTO friend_requests (id, sender_id, receiver_id, status, created_at, closed_at)
          VALUES (
            overlay(uuid_v7()::text PLACING 'ffff' FROM 1 FOR 4)::uuid, \(ana.userID), \(other.userID), 'accepted',
            now() - interval '2 days', now()
          )
          """)
      }
      try await app.database.execute(
        """
        INSERT INTO friend_requests (id, sender_id, receiver_id, status, closed_at)
        SELECT uuid_v7(), \(ana.userID), receiver_id, 'accepted', now()
        FROM friend_requests WHERE sender_id = \(ana.userID) LIMIT 50
        """)
      let refused = try await ana.send("POST", "friend-requests", #"{"receiverId": "\#(others[51].id)"}"#)
      #expect(refused.status == 429 && refused.problem == "too-many-friend-requests", "\(refused.body)")
      try await app.takeNotifications()
    }
  }
}
