import Postgres
import TestSupport
import Testing

@testable import App

/// Writes with an `Idempotency-Key`: one effect and one response, however often they are sent.
@Suite struct IdempotencyTests {
  private static let event = #"{"title": "Picnic", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC"}"#

  /// All but what each response has of its own.
  private func same(_ one: APIResponse, _ other: APIResponse, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(one.status == other.status && one.body == other.body, "\(other.body)", sourceLocation: sourceLocation)
    for name in ["Content-Type", "ETag", "Location", "Cache-Control"] {
      #expect(one.header(name) == other.header(name), "\(name)", sourceLocation: sourceLocation)
    }
    #expect(other.header("Idempotent-Replayed") == "true", sourceLocation: sourceLocation)
  }

  @Test func `a repeated write gets the first response and has no second effect`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let key = [("Idempotency-Key", "a-key")]
      let first = try await ana.send("POST", "events", Self.event, headers: key)
      #expect(first.status == 201 && first.header("Idempotent-Replayed") == nil)
      let id = try #require(first.json["id"].string)
      try await ana.edit(id, #"{"title": "Dinner"}"#)
      for _ in 1...3 { same(first, try await ana.send("POST", "events", Self.event, headers: key)) }
      #expect(try await app.value("SELECT count(*) FROM events") == 1)
      // The key is unique for the user, the method and the path.
      #expect(try await ben.send("POST", "events", Self.event, headers: key).status == 201)
      let friendship = try await ana.send("DELETE", "friends/\(ben.id)", headers: key)
      #expect(friendship.status == 204)
      try await app.befriend(ana, ben)
      same(friendship, try await ana.send("DELETE", "friends/\(ben.id)", headers: key))
      #expect(try await ana.get("friends")["items"].array.count == 1)
      // Without a key, or with another one, it is another request.
      for headers in [[], [("Idempotency-Key", "another-key")]] {
        #expect(try await ana.send("POST", "events", Self.event, headers: headers).json["id"].string != id)
      }
      try await app.takeNotifications()
    }
  }

  @Test func `a request that was pending already is not sent again under its key`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let request = try await ana.sendFriendRequest(to: ben)
      let key = [("Idempotency-Key", "a-key")]
      let body = #"{"receiverId": "\#(ben.id)"}"#
      let first = try await ana.send("POST", "friend-requests", body, headers: key)
      #expect(first.status == 200 && first.json["id"].string == request)
      try await ben.decline(request)
      same(first, try await ana.send("POST", "friend-requests", body, headers: key))
      #expect(try await app.value("SELECT count(*) FROM friend_requests") == 1)
      try await app.takeNotifications()
    }
  }

  @Test func `every write outside auth takes a key`() async throws {
    try await TestApp.run { app in
      let (ana, ben, cleo, event) = try await app.hostAndGuests()
      let dev = try await app.signUp("dev")
      let request = try await dev.sendFriendRequest(to: ana)
      try await app.fanOut()
      let device = #"{"platform": "log", "token": "anas"}"#
      let calls: [(Phone, String, String, String?)] = [
        (ana, "PATCH", "users/me", #"{"displayName": "Ana Two"}"#), (ana, "PUT", "users/me/picture", Sample.webpText),
        (ana, "DELETE", "users/me/picture", nil), (ana, "PUT", "devices", device),
        (ana, "PUT", "notification-preferences", #"{"event-updated": false}"#),
        (ana, "POST", "notifications/read", #"{"all": true}"#),
        (ana, "POST", "reports", #"{"userId": "\#(dev.id)", "reason": "spam"}"#),
        (ana, "POST", "friend-requests/\(request)/accept", nil), (ana, "PATCH", "events/\(event)", #"{"note": "Now"}"#),
        (ben, "PUT", "events/\(event)/invitations/me", #"{"status": "going"}"#),
        (ana, "POST", "events/\(event)/invitations", #"{"userIds": ["\#(dev.id)"]}"#),
        (ana, "DELETE", "events/\(event)/invitations/\(cleo.id)", nil), (ana, "PUT", "blocks/\(cleo.id)", nil),
        (ana, "DELETE", "blocks/\(cleo.id)", nil), (ana, "DELETE", "friends/\(dev.id)", nil),
        (ana, "POST", "friend-requests", #"{"receiverId": "\#(dev.id)"}"#), (ana, "DELETE", "events/\(event)", nil),
      ]
      for (number, (phone, method, path, body)) in calls.enumerated() {
        let key = [("Idempotency-Key", "key-\(number)")]
        let first = try await phone.send(method, path, body, headers: key)
        #expect((200..<300).contains(first.status), "\(method) \(path): \(first.body)")
        same(first, try await phone.send(method, path, body, headers: key))
      }
      // The block has ended the replay of the request about cleo.
      #expect(try await app.value("SELECT count(*) FROM idempotency_keys") == calls.count - 1)
      try await app.takeNotifications()
    }
  }

  /// A write, and how it is answered when it is sent again after a block between ana and ben.
  private struct Keyed {
    enum Again {
      /// Runs again.
      case refused(Int)
      /// Shows the event as the caller sees it now.
      case current
      case replayed
    }
    let phone: Phone
    let method: String
    let path: String
    var body: String?
    let again: Again

    func send(_ key: String) async throws -> APIResponse {
      try await phone.send(method, path, body, headers: [("Idempotency-Key", key)])
    }
  }

  @Test(arguments: ["ana", "ben"])
  func `a block ends the replays of two users about each other, and no others`(_ blocker: String) async throws {
    try await TestApp.run { app in
      let (ana, ben, cleo, event) = try await app.hostAndGuests()
      let (dev, emre) = (try await app.signUp("dev"), try await app.signUp("emre"))
      try await app.befriend(cleo, ben)
      let (asked, declined) = (try await dev.sendFriendRequest(to: ben), try await emre.sendFriendRequest(to: ben))
      let party = try await cleo.createEvent("Party", inviting: [ana, ben])["id"].string ?? ""
      let shared = try await ana.createEvent("Dinner", inviting: [cleo])["id"].string ?? ""
      let link = try await ana.createLink(to: shared, #"{"kind": "answer"}"#)
      let approving = try await ana.createLink(to: shared, #"{"kind": "answer", "approval": true}"#)
      _ = try await ana.send("DELETE", "friends/\(ben.id)")
      let going = #"{"status": "going"}"#
      let (one, both) = (#"{"userIds": ["\#(ben.id)"]}"#, #"{"userIds": ["\#(ben.id)", "\#(cleo.id)"]}"#)
      let plan =
        #"{"title": "Lunch", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC", "inviteeIds": ["\#(ben.id)"]}"#
      let request =
        try await ben.send("POST", "friend-requests", #"{"receiverId": "\#(ana.id)"}"#).json["id"].string ?? ""
      // Neither is named in the last ones, but some show them.
      let calls = [
        Keyed(
          phone: ben, method: "POST", path: "friend-requests", body: #"{"receiverId": "\#(ana.id)"}"#,
          again: .refused(404)),
        Keyed(phone: ana, method: "POST", path: "friend-requests/\(request)/accept", again: .refused(404)),
        Keyed(phone: ana, method: "POST", path: "events", body: plan, again: .refused(422)),
        Keyed(phone: ben, method: "PUT", path: "events/\(event)/invitations/me", body: going, again: .refused(404)),
        Keyed(
          phone: ana, method: "PUT", path: "events/\(event)/invitations/\(ben.id)", body: going, again: .refused(404)),
        Keyed(phone: ana, method: "POST", path: "events/\(event)/invitations", body: one, again: .refused(422)),
        Keyed(phone: ana, method: "POST", path: "events/\(event)/invitations", body: both, again: .refused(422)),
        Keyed(phone: ana, method: "PATCH", path: "events/\(event)", body: #"{"note": "Now"}"#, again: .current),
        Keyed(
          phone: ana, method: "POST", path: "events/\(event)/duplicate",
          body: #"{"startTime": "2030-06-01T18:00:00Z", "invite": true}"#, again: .current),
        Keyed(phone: ben, method: "POST", path: "links/\(link.token)/join", again: .refused(404)),
        Keyed(phone: dev, method: "POST", path: "links/\(approving.token)/join", again: .replayed),
        Keyed(phone: ana, method: "POST", path: "events/\(shared)/invitations/\(dev.id)/approve", again: .current),
        // Both are guests of a third user's event.
        Keyed(phone: ana, method: "PUT", path: "events/\(party)/invitations/me", body: going, again: .current),
        Keyed(phone: ben, method: "PUT", path: "events/\(party)/invitations/me", body: going, again: .current),
        Keyed(phone: cleo, method: "PATCH", path: "events/\(party)", body: #"{"note": "Now"}"#, again: .replayed),
        Keyed(phone: ben, method: "POST", path: "friend-requests/\(asked)/accept", again: .replayed),
        Keyed(phone: ben, method: "POST", path: "friend-requests/\(declined)/decline", again: .replayed),
        Keyed(phone: ana, method: "PATCH", path: "users/me", body: #"{"bio": "Swims"}"#, again: .replayed),
      ]
      var first: [APIResponse] = []
      for (number, call) in calls.enumerated() {
        first.append(try await call.send("key-\(number)"))
        #expect((200..<300).contains(first[number].status), "\(call.method) \(call.path): \(first[number].body)")
      }
      let events: Int? = try await app.value("SELECT count(*) FROM events")
      if blocker == "ana" { try await ana.block(ben) } else { try await ben.block(ana) }
      for (number, call) in calls.enumerated() {
        let again = try await call.send("key-\(number)")
        let comment = Comment(rawValue: "\(call.method) \(call.path): \(again.body)")
        switch call.again {
        case .refused(let status): #expect(again.status == status, comment)
        case .replayed: same(first[number], again)
        case .current:
          let other = call.phone.id == ana.id ? ben : ana
          #expect(first[number].body.contains(other.id), comment)
          #expect(again.status == first[number].status && again.header("Idempotent-Replayed") == "true", comment)
          #expect(again.json["id"] == first[number].json["id"] && !again.body.contains(other.id), comment)
          #expect(again.header("Location") == first[number].header("Location"), comment)
          #expect(again.json == (try await call.phone.get("events/\(again.json["id"].string ?? "")")), comment)
        }
      }
      #expect(try await app.value("SELECT count(*) FROM events") == events)
      try await app.takeNotifications()
    }
  }

  @Test func `a creation is repeated as it was, also after a visitor of the event is gone`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let first = try await ana.send("POST", "events", Self.event, headers: [("Idempotency-Key", "create")])
      let event = try #require(first.json["id"].string)
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let visit = try await app.visit(link.token, name: "Zoe")
      func edit() async throws -> APIResponse {
        try await ana.send("PATCH", "events/\(event)", #"{"note": "Now"}"#, headers: [("Idempotency-Key", "edit")])
      }
      let edited = try await edit()
      #expect(edited.body.contains("Zoe"))
      try await visit.act("erase", expecting: 200)
      let again = try await edit()
      #expect(again.status == 200 && !again.body.contains("Zoe"))
      same(first, try await ana.send("POST", "events", Self.event, headers: [("Idempotency-Key", "create")]))
      try await app.takeNotifications()
    }
  }

  @Test func `another body, version or query under the same key is refused`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let id = try await ana.createEvent()["id"].string ?? ""
      let key = ("Idempotency-Key", "a-key")
      let first = try await ana.send(
        "PATCH", "events/\(id)", #"{"title": "One"}"#, headers: [key, ("If-Match", "\"1\"")])
      #expect(first.status == 200)
      for (body, version) in [(#"{"title": "Two"}"#, "\"1\""), (#"{"title": "One"}"#, "\"2\"")] {
        let refused = try await ana.send("PATCH", "events/\(id)", body, headers: [key, ("If-Match", version)])
        #expect(refused.status == 422 && refused.problem == "idempotency-key-reused", "\(body) \(version)")
      }
      for bad in ["", " ", "two words", "ä", String(repeating: "x", count: 256)] {
        let refused = try await ana.send(
          "PATCH", "events/\(id)", #"{"title": "Two"}"#, headers: [("Idempotency-Key", bad)])
        #expect(refused.badFields == ["Idempotency-Key"], "\(bad): \(refused.body)")
      }
      #expect(try await ana.get("events/\(id)")["title"].string == "One")
      try await app.takeNotifications()
    }
  }

  /// A call that changes nothing, the one that changes it meanwhile, and the member of the response that tells.
  private struct Idle {
    let call: (method: String, path: String, body: String?)
    let meanwhile: (method: String, path: String, body: String)
    let member: String
  }

  @Test func `a write that changes nothing stores no response, and has no effect when it is repeated either`()
    async throws
  {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let id = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
      let link = try await ana.createLink(to: id, #"{"kind": "answer"}"#)
      try await ben.answer("going", to: id)
      let answer = "events/\(id)/invitations/me"
      let cases: [(phone: Phone, idle: Idle)] = [
        (
          ana,
          Idle(
            call: ("PATCH", "events/\(id)", #"{"title": "Picnic"}"#),
            meanwhile: ("PATCH", "events/\(id)", #"{"title": "Barbecue"}"#), member: "title")
        ),
        (
          ana,
          Idle(
            call: ("PATCH", "users/me", #"{"displayName": "Ana"}"#),
            meanwhile: ("PATCH", "users/me", #"{"displayName": "Anna"}"#), member: "displayName")
        ),
        (
          ana,
          Idle(
            call: ("PATCH", "events/\(id)/links/\(link.id)", #"{"shows": "counts"}"#),
            meanwhile: ("PATCH", "events/\(id)/links/\(link.id)", #"{"shows": "names"}"#), member: "shows")
        ),
        (
          ana,
          Idle(
            call: ("PUT", "notification-preferences", #"{"event-updated": true}"#),
            meanwhile: ("PUT", "notification-preferences", #"{"event-updated": false}"#), member: "event-updated")
        ),
        (
          ben,
          Idle(
            call: ("PUT", answer, #"{"status": "going"}"#), meanwhile: ("PUT", answer, #"{"status": "declined"}"#),
            member: "myStatus")
        ),
      ]
      for (number, (phone, idle)) in cases.enumerated() {
        let (method, path, body) = idle.call
        let key = [("Idempotency-Key", "idle-\(number)")]
        let first = try await phone.send(method, path, body, headers: key)
        #expect(first.status == 200 && first.header("Idempotent-Replayed") == nil, "\(path): \(first.body)")
        #expect(
          try await app.value("SELECT count(*) FROM idempotency_keys WHERE sealed_response IS NOT NULL") == 0, "\(path)"
        )
        same(first, try await phone.send(method, path, body, headers: key))
        // The value changes in between. A late copy of the request must not undo that.
        let changed = try await phone.send(idle.meanwhile.method, idle.meanwhile.path, idle.meanwhile.body)
        #expect(changed.json[idle.member] != first.json[idle.member], "\(path): \(changed.body)")
        let again = try await phone.send(method, path, body, headers: key)
        #expect(again.status == 200 && again.header("Idempotent-Replayed") == "true", "\(path): \(again.body)")
        #expect(again.json[idle.member] == changed.json[idle.member], "\(path): \(again.body)")
        // The key still belongs to the first request.
        let reused = try await phone.send(method, path, idle.meanwhile.body, headers: key)
        #expect(reused.problem == "idempotency-key-reused", "\(path): \(reused.body)")
      }
      #expect(try await app.value("SELECT count(*) FROM idempotency_keys") == cases.count)
      // An event that can no longer be read is not in an old response either.
      try await ben.block(ana)
      let hidden = try await ben.send("PUT", answer, #"{"status": "going"}"#, headers: [("Idempotency-Key", "idle-4")])
      #expect(hidden.status == 404, "\(hidden.body)")
      // Cancelling twice: the second request changes nothing.
      #expect(try await ana.send("DELETE", "events/\(id)", headers: [("Idempotency-Key", "end")]).status == 200)
      #expect(try await app.value("SELECT count(*) FROM idempotency_keys WHERE sealed_response IS NOT NULL") == 1)
      let twice = [("Idempotency-Key", "end-again")]
      for _ in 0..<2 {
        #expect(
          try await ana.send("DELETE", "events/\(id)", headers: twice).json["status"].string == "cancelled")
      }
      #expect(try await app.value("SELECT count(*) FROM idempotency_keys WHERE sealed_response IS NOT NULL") == 1)
      try await app.takeNotifications()
    }
  }

  @Test func `of idle requests with one key at once, each gets the current state`() async throws {
    try await TestApp.run(queuesWrites: false) { app in
      let ana = try await app.signUp("ana")
      let id = try await ana.createEvent()["id"].string ?? ""
      let statuses = try await app.race(10) { _ in
        try await ana.send("PATCH", "events/\(id)", #"{"title": "Picnic"}"#, headers: [("Idempotency-Key", "one")])
      }
      #expect(statuses.keys.allSatisfy { [200, 409].contains($0) } && statuses[200] ?? 0 > 0, "\(statuses)")
      #expect(try await app.value("SELECT count(*) FROM idempotency_keys") == 1)
    }
  }

  @Test func `a refused write is not stored, and may succeed later under the same key`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let key = [("Idempotency-Key", "a-key")]
      let body =
        #"{"title": "P", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC", "inviteeIds": ["\#(ben.id)"]}"#
      #expect(try await ana.send("POST", "events", body, headers: key).status == 422)
      #expect(try await app.value("SELECT count(*) FROM idempotency_keys") == 0)
      try await app.befriend(ana, ben)
      let first = try await ana.send("POST", "events", body, headers: key)
      #expect(first.status == 201)
      same(first, try await ana.send("POST", "events", body, headers: key))
      try await app.takeNotifications()
    }
  }

  @Test func `of requests with one key at once, one has an effect`() async throws {
    try await TestApp.run(queuesWrites: false) { app in
      let ana = try await app.signUp("ana")
      let responses = try await withThrowingTaskGroup(of: APIResponse.self) { group in
        for _ in 0..<12 {
          group.addTask { try await ana.send("POST", "events", Self.event, headers: [("Idempotency-Key", "a-key")]) }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      let made = Set(responses.filter { $0.status == 201 }.compactMap { $0.json["id"].string })
      #expect(made.count == 1)
      for response in responses where response.status != 201 {
        #expect(response.status == 409 && response.problem == "request-running", "\(response.body)")
        #expect(response.header("Retry-After") == "1")
      }
      #expect(try await app.value("SELECT count(*) FROM events") == 1)
    }
  }

  @Test func `while the first request runs, a repeated one gets 409`() async throws {
    try await TestApp.run(queuesWrites: false) { app in
      let ana = try await app.signUp("ana")
      // Holds the first request at the lock of its user.
      let (isHeld, end) = (AsyncStream.makeStream(of: Void.self), AsyncStream.makeStream(of: Void.self))
      async let holding: Void = app.database.transaction { transaction in
        try await transaction.rows("SELECT 1 FROM users WHERE id = \(ana.userID) FOR UPDATE")
        isHeld.continuation.finish()
        for await _ in end.stream {}
      }
      for await _ in isHeld.stream {}
      let key = [("Idempotency-Key", "a-key")]
      async let first = ana.send("POST", "events", Self.event, headers: key)
      try await eventually {
        try await app.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1") as Int? == 1
      }
      #expect(try await ana.send("POST", "events", Self.event, headers: key).problem == "request-running")
      end.continuation.finish()
      try await holding
      #expect(try await first.status == 201)
      same(try await first, try await ana.send("POST", "events", Self.event, headers: key))
    }
  }

  @Test func `a repeated registration logs in again, with the same password only`() async throws {
    try await TestApp.run { app in
      let key = [("Idempotency-Key", "a-key")]
      let body =
        #"{"username": "ana", "email": "ana@example.com", "password": "correct horse", "device": "Ana's iPhone"}"#
      let first = try await app.send("POST", "auth/register", body: body, headers: key)
      #expect(first.status == 201)
      let again = try await app.send("POST", "auth/register", body: body, headers: key)
      #expect(again.status == 201 && again.json["user"]["id"] == first.json["user"]["id"], "\(again.body)")
      #expect(again.json["refreshToken"] != first.json["refreshToken"])
      #expect(try await app.value("SELECT count(*) FROM sessions WHERE device = 'Ana''s iPhone'") == 2)
      let other = body.replacing("correct horse", with: "another horse")
      #expect(
        try await app.send("POST", "auth/register", body: other, headers: key).problem == "idempotency-key-reused")
      #expect(try await app.send("POST", "auth/register", body: body).problem == "username-taken")
      // The password was changed meanwhile.
      let ana = try Phone(app, "ana", first)
      let change = #"{"currentPassword": "correct horse", "newPassword": "a new horse"}"#
      #expect(try await ana.send("POST", "auth/password", change).status == 204)
      #expect(try await app.send("POST", "auth/register", body: body, headers: key).problem == "wrong-credentials")
      try await app.takeMails()
    }
  }

  /// Otherwise anyone who has seen the body and the key could log in.
  @Test func `a repeated registration without a password does not log in`() async throws {
    try await TestApp.run { app in
      let key = [("Idempotency-Key", "a-key")]
      let body = #"{"username": "ana", "email": "ana@example.com"}"#
      let first = try await app.send("POST", "auth/register", body: body, headers: key)
      #expect(first.status == 201, "\(first.body)")
      for _ in 1...2 {
        let again = try await app.send("POST", "auth/register", body: body, headers: key)
        #expect(again.status == 409 && again.problem == "username-taken", "\(again.body)")
      }
      let without = try await app.send("POST", "auth/register", body: body)
      #expect(without.problem == "username-taken")
      let other = body.replacing("}", with: #", "password": "correct horse"}"#)
      #expect(
        try await app.send("POST", "auth/register", body: other, headers: key).problem == "idempotency-key-reused")
      #expect(try await app.value("SELECT count(*) FROM sessions") == 1)
      // The user gets in with a code.
      let code = try await app.takeCode(of: "ana@example.com").code
      let response = try await app.confirmCode(code, of: "ana@example.com")
      #expect(response.json["user"]["id"] == first.json["user"]["id"])
    }
  }

  @Test func `the table holds neither bodies nor responses, is emptied after a day, and with the account`() async throws
  {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let secret = Self.event.replacing("Picnic", with: "A secret plan")
      let key = [("Idempotency-Key", "a-key")]
      #expect(try await ana.send("POST", "events", secret, headers: key).status == 201)
      let rows = try await app.database.rows("SELECT encode(sealed_response, 'escape') FROM idempotency_keys")
      #expect(try !(rows[0][0] as String).contains("secret plan"))
      #expect(try await IdempotentRequest.purge(atMost: 10, in: app.service) == 0)
      try await app.database.execute("UPDATE idempotency_keys SET created_at = now() - interval '25 hours'")
      #expect(try await IdempotentRequest.purge(atMost: 10, in: app.service) == 1)
      #expect(try await ana.send("POST", "events", secret, headers: key).header("Idempotent-Replayed") == nil)
      try await ana.deleteAccount()
      #expect(try await app.value("SELECT count(*) FROM idempotency_keys") == 0)
    }
  }

  @Test func `a service that is killed at any moment leaves one effect and one response`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      var effects = 0
      for round in 0..<8 {
        let key = [("Idempotency-Key", "key-\(round)")]
        let service = try await ServiceProcess(of: app)
        let sending = Task {
          try await service.app.send("POST", "events", body: Self.event, headers: key, token: ana.accessToken)
        }
        try await Task.sleep(for: .microseconds(Int.random(in: 0..<25_000)))
        try await service.kill()
        let id = try? await sending.value.json["id"].string
        // PostgreSQL may still be working on the request of the killed process.
        var again = try await ana.send("POST", "events", Self.event, headers: key)
        while again.problem == "request-running" {
          again = try await ana.send("POST", "events", Self.event, headers: key)
        }
        #expect(again.status == 201, "\(again.body)")
        if let id { #expect(again.json["id"].string == id) }
        effects += 1
        #expect(try await app.value("SELECT count(*) FROM events") == effects, "\(round)")
      }
    }
  }
}
