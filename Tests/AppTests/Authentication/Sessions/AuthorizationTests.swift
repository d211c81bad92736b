import Foundation
import Hummingbird
import Postgres
import TestSupport
import Testing

@testable import App

/// Who may call what: every kind of caller calls each route. A new operation of the document needs a line in
/// `Line.table`.
@Suite struct AuthorizationTests {
  @Test func `every route has a line in the table, and every line a route`() throws {
    let lines = try Line.all()
    #expect(Set(App.Operation.allCases).symmetricDifference(lines.map(\.operation)) == [])
    #expect(Set(lines.map(\.description)).count == lines.count)
  }

  @Test func `every caller gets the status in the table, whatever their token`() async throws {
    let environment = [
      "MUSTER_THROTTLING": "off", "MUSTER_APPLE_CLIENT_IDS": "app.example", "MUSTER_GOOGLE_CLIENT_IDS": "app.example",
    ]
    try await TestApp.run(environment) { app in
      let lines = try Line.all()
      var gathered = try await Cast.gather(lines.count, in: app)
      gathered.things["pictures"] = String(try await gathered.owner.show(Sample.png()).suffix(24))
      let readers = gathered
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (number, line) in lines.enumerated() {
          // More concurrent lines would only slow each other down.
          if number >= 6 { _ = try await group.next() }
          group.addTask {
            // Each write has its own cast, so that one call does not spoil the next.
            let cast = line.isRead ? readers : try await Cast.gather(number, in: app)
            try await Self.checkRefusals(line, cast)
            for caller in Caller.allCases { try await Self.check(line, cast, caller) }
          }
        }
        try await group.waitForAll()
      }
      try await app.takeNotifications()
    }
  }

  /// A caller without a valid token gets 401 and the reason, or is served if the route needs no token.
  private static func checkRefusals(_ line: Line, _ cast: Cast) async throws {
    for (who, token, slug) in cast.withoutAccess {
      let response = try await cast.call(line, by: cast.owner, token: token)
      let comment: Comment = "\(line) by \(who): \(response.status) \(response.body)"
      guard line.needsToken || line.takesToken && token != nil else {
        #expect(response.status == line.statuses[.owner], comment)
        continue
      }
      #expect(response.status == 401 && response.problem == slug, comment)
      // RFC 6750: an error code only if the request has a token.
      let challenge = response.header("WWW-Authenticate")
      #expect(token == nil ? challenge == "Bearer" : challenge?.hasPrefix("Bearer") == true, comment)
      if slug == "invalid-token" || slug == "token-expired" {
        #expect(challenge?.hasPrefix(#"Bearer error="invalid_token""#) == true, comment)
      }
    }
  }

  /// A call with a valid token. A hidden thing gets the same response as one that does not exist.
  private static func check(_ line: Line, _ cast: Cast, _ caller: Caller) async throws {
    let person = try #require(cast.people[caller])
    let response = try await cast.call(line, by: person, token: person.accessToken)
    let comment: Comment = "\(line) by the \(caller): \(response.status) \(response.body)"
    #expect(response.status == line.statuses[caller], comment)
    guard response.status >= 400 else { return }
    #expect(response.problem == line.slug(of: response.status, for: caller), comment)
    guard response.status == 404 else { return }
    let unknown = try await cast.call(
      line, by: person, token: person.accessToken, naming: UUID().uuidString.lowercased())
    #expect(unknown.status == 404 && unknown.withoutRequestID == response.withoutRequestID, comment)
  }
}

/// The caller's relation to the owner of the thing that the call names. The columns have this order, and so have the
/// calls. The owner's call comes last: the other callers' attempts must not have changed anything. Only what a co-host
/// may do is done when the owner repeats it. A co-host is also a friend, and hosts the owner's event.
private enum Caller: String, CaseIterable {
  case stranger, friend, invitee, blocked, cohost, owner
}

/// A route, and the status that each caller gets.
private struct Line: CustomStringConvertible {
  /// If the document says that an operation needs a token, the route refuses calls without a token, with garbage, with an
  /// expired token, and with a token of an ended session or a deleted user. If the token is optional, calls without a
  /// token are served. Otherwise the token is ignored, and all callers get the same.
  /// `slugs`: for the statuses that are refusals, of all callers or of one. Paths without a leading slash are below
  /// `/api/v1/`. `{userId:visitor}` names another thing than the route's usual one: see `Cast.things`.
  static let table = """
    route                                                   stranger friend invitee blocked cohost owner slugs
    GET    /health/live                                          200    200     200     200    200   200
    GET    /health/ready                                         200    200     200     200    200   200
    GET    /openapi.yaml                                         200    200     200     200    200   200
    GET    /openapi.json                                         200    200     200     200    200   200
    GET    /docs                                                 200    200     200     200    200   200
    GET    /pictures/{key}                                       200    200     200     200    200   200
    GET    /calendars/{file}                                     200    200     200     200    200   200
    POST   auth/register                                         201    201     201     201    201   201
    POST   auth/login                                            200    200     200     200    200   200
    POST   auth/refresh                                          200    200     200     200    200   200
    POST   auth/password-reset                                   202    202     202     202    202   202
    POST   auth/password-reset/confirm                           422    422     422     422    422   422 422:invalid-fields
    POST   auth/email/verify                                     422    422     422     422    422   422 422:invalid-fields
    POST   auth/email/undo                                       422    422     422     422    422   422 422:invalid-fields
    POST   auth/code                                             202    202     202     202    202   202
    POST   auth/code/confirm                                     401    401     401     401    401   401 401:invalid-code
    POST   auth/apple                                            401    401     401     401    401   401 401:invalid-identity-token
    POST   auth/google                                           401    401     401     401    401   401 401:invalid-identity-token
    POST   auth/apple/notifications                              401    401     401     401    401   401 401:invalid-notification
    DELETE auth/apple                                            204    204     204     204    204   204
    DELETE auth/google                                           204    204     204     204    204   204
    POST   auth/apple/link                                       401    401     401     401    401   401 401:invalid-identity-token
    POST   auth/google/link                                      401    401     401     401    401   401 401:invalid-identity-token
    POST   auth/logout                                           204    204     204     204    204   204
    GET    auth/sessions                                         200    200     200     200    200   200
    DELETE auth/sessions/{id}                                    404    404     404     404    404   204 404:session-not-found
    POST   auth/password                                         204    204     204     204    204   204
    GET    users/me                                              200    200     200     200    200   200
    PATCH  users/me                                              200    200     200     200    200   200
    DELETE users/me                                              204    204     204     204    204   204
    GET    users/me/export                                       200    200     200     200    200   200
    PUT    users/me/picture                                      200    200     200     200    200   200
    DELETE users/me/picture                                      204    204     204     204    204   204
    GET    users/me/calendar                                     200    200     200     200    200   200
    POST   users/me/calendar                                     201    201     201     201    201   201
    DELETE users/me/calendar                                     204    204     204     204    204   204
    GET    users                                                 200    200     200     200    200   200
    GET    users/recommended                                     200    200     200     200    200   200
    GET    users/{id}                                            200    200     200     404    200   200 404:user-not-found
    GET    friends                                               200    200     200     200    200   200
    DELETE friends/{userId}                                      204    204     204     404    204   204 404:user-not-found
    GET    blocks                                                200    200     200     200    200   200
    PUT    blocks/{userId}                                       204    204     204     204    204   422 422:invalid-fields
    DELETE blocks/{userId}                                       204    204     204     204    204   204
    POST   reports                                               201    201     201     201    201   422 422:invalid-fields
    GET    friend-requests                                       200    200     200     200    200   200
    POST   friend-requests                                       201    409     409     404    409   422 404:user-not-found 409:already-friends 422:invalid-fields
    GET    friend-requests/{id}                                  404    404     404     404    404   200 404:friend-request-not-found
    DELETE friend-requests/{id}                                  404    404     404     404    404   200 404:friend-request-not-found
    POST   friend-requests/{id}/accept                           404    404     404     404    404   200 404:friend-request-not-found
    POST   friend-requests/{id}/decline                          404    404     404     404    404   200 404:friend-request-not-found
    GET    events                                                200    200     200     200    200   200
    POST   events                                                422    201     201     422    201   422 422:invalid-fields
    GET    events/{id}                                           404    404     200     404    200   200 404:event-not-found
    PATCH  events/{id}                                           404    404     403     404    200   200 404:event-not-found 403:not-a-host
    DELETE events/{id}                                           404    404     403     404    403   200 404:event-not-found 403:not-the-creator
    GET    events/{id}/invitations                               404    404     200     404    200   200 404:event-not-found
    POST   events/{id}/invitations                               404    404     403     404    200   422 404:event-not-found 403:not-a-host 422:invalid-fields
    DELETE events/{id}/invitations/{userId}                      404    404     403     404    200   200 404:event-not-found 403:not-a-host
    DELETE events/{id}/invitations/{userId:visitor}              404    404     403     404    200   200 404:event-not-found 403:not-a-host
    DELETE events/{id}/invitations/{userId:pending}              404    404     403     404    200   200 404:event-not-found 403:not-a-host
    POST   events/{id}/invitations/{userId}/approve              404    404     403     404    200   200 404:event-not-found 403:not-a-host
    POST   events/{id}/invitations/{userId:pending}/approve      404    404     403     404    200   200 404:event-not-found 403:not-a-host
    PUT    events/{id}/hosts/{userId}                            404    404     403     404    403   200 404:event-not-found 403:not-the-creator
    PUT    events/{id}/hosts/{userId:cohost}                     404    404     403     404    403   200 404:event-not-found 403:not-the-creator
    PUT    events/{id}/invitations/{userId}                      404    404     403     404    200   200 404:event-not-found 403:not-a-host
    PUT    events/{id}/invitations/{userId:visitor}              404    404     403     404    200   200 404:event-not-found 403:not-a-host
    PUT    events/{id}/invitations/{userId:pending}              404    404     403     404    409   409 404:event-not-found 403:not-a-host 409:approval-pending
    POST   events/{id}/reminders                                 404    404     403     404    200   200 404:event-not-found 403:not-a-host
    POST   events/{id}/duplicate                                 404    404     403     404    201   201 404:event-not-found 403:not-a-host
    DELETE events/{id}/hosts/{userId}                            404    404     403     404    403   204 404:event-not-found 403:not-a-host cohost:403:not-the-creator
    DELETE events/{id}/hosts/{userId:cohost}                     404    404     403     404    204   204 404:event-not-found 403:not-the-creator
    GET    events/{id}/calendar.ics                              404    404     200     404    200   200 404:event-not-found
    PUT    events/{id}/invitations/me                            404    404     200     404    409   409 404:event-not-found 409:own-event
    GET    events/{id}/host-offers                               404    404     403     404    200   200 404:event-not-found 403:not-a-host
    GET    events/{id}/links                                     404    404     403     404    200   200 404:event-not-found 403:not-a-host
    POST   events/{id}/links                                     404    404     403     404    201   201 404:event-not-found 403:not-a-host
    GET    events/{id}/links/{linkId}                            404    404     403     404    200   200 404:event-not-found 403:not-a-host
    PATCH  events/{id}/links/{linkId}                            404    404     403     404    200   200 404:event-not-found 403:not-a-host
    DELETE events/{id}/links/{linkId}                            404    404     403     404    204   204 404:event-not-found 403:not-a-host
    GET    proposals                                             200    200     200     200    200   200
    POST   proposals/{id}/accept                                 404    404     404     404    404   200 404:proposal-not-found
    POST   proposals/{id}/decline                                404    404     404     404    404   204 404:proposal-not-found
    POST   links/{token}/join                                    200    200     200     404    409   409 404:link-not-found 409:own-event
    GET    /.well-known/apple-app-site-association               404    404     404     404    404   404 404:app-links-not-configured
    GET    /.well-known/assetlinks.json                          404    404     404     404    404   404 404:app-links-not-configured
    GET    /e/{token}                                            200    200     200     200    200   200
    POST   /e/{token}                                            415    415     415     415    415   415 415:unsupported-media-type
    GET    /e/{token}/report                                     200    200     200     200    200   200
    POST   /e/{token}/report                                     415    415     415     415    415   415 415:unsupported-media-type
    GET    /g/{token}                                            200    200     200     200    200   200
    POST   /g/{token}                                            415    415     415     415    415   415 415:unsupported-media-type
    GET    /g/{token}/unsubscribe                                200    200     200     200    200   200
    POST   /g/{token}/unsubscribe                                200    200     200     200    200   200
    GET    /verify/{token}                                       404    404     404     404    404   404
    POST   /verify/{token}                                       415    415     415     415    415   415 415:unsupported-media-type
    GET    /undo/{token}                                         404    404     404     404    404   404
    POST   /undo/{token}                                         415    415     415     415    415   415 415:unsupported-media-type
    GET    /m/{token}                                            200    200     200     200    200   200
    POST   /m/{token}                                            200    200     200     200    200   200
    GET    /calendars/visitors/{file}                            200    200     200     200    200   200
    GET    invitations                                           200    200     200     200    200   200
    GET    notifications/stream                                  200    200     200     200    200   200
    POST   cache/validate/{userId}                               403    403     403     403    403   200 403:not-yours
    GET    notifications                                         200    200     200     200    200   200
    POST   notifications/read                                    200    200     200     200    200   200
    GET    notification-preferences                              200    200     200     200    200   200
    PUT    notification-preferences                              200    200     200     200    200   200
    GET    devices                                               200    200     200     200    200   200
    PUT    devices                                               201    201     201     201    201   201
    DELETE devices/{id}                                          404    404     404     404    404   204 404:device-not-found
    """

  /// As in the table, without the names of things.
  let name: String
  let method: String
  /// With the names of things.
  let path: String
  let operation: App.Operation
  let needsToken: Bool
  let takesToken: Bool
  let statuses: [Caller: Int]
  private let slugs: [Int: String]
  private let ownSlugs: [Caller: [Int: String]]

  var isRead: Bool { method == "GET" }
  private static let operations = Dictionary(
    uniqueKeysWithValues: App.Operation.allCases.map { ("\($0.attributes.method.rawValue) \($0.attributes.path)", $0) })

  var description: String { "\(method) \(path)" }

  func slug(of status: Int, for caller: Caller) -> String? { ownSlugs[caller]?[status] ?? slugs[status] }

  private static func withoutThings(_ text: String) -> String { text.replacing(/:\w+}/, with: "}") }

  static func all() throws -> [Line] {
    let lines = table.split(separator: "\n")
    let columns = lines[0].split(separator: " ").compactMap { Caller(rawValue: String($0)) }
    try #require(columns == Caller.allCases, "the table needs these columns: \(Caller.allCases.map(\.rawValue))")
    return try lines.dropFirst().map { try Line($0, columns) }
  }

  private init(_ text: Substring, _ columns: [Caller]) throws {
    let words = text.split(separator: " ").map(String.init)
    try #require(words.count >= 2 + columns.count, "\(text)")
    var statuses: [Caller: Int] = [:]
    for (caller, word) in zip(columns, words.dropFirst(2)) {
      let status: Int = try #require(Int(word), "\(text)")
      statuses[caller] = status
    }
    var slugs: [Int: String] = [:]
    var ownSlugs: [Caller: [Int: String]] = [:]
    for word in words.dropFirst(2 + columns.count) {
      let parts = word.split(separator: ":").map(String.init)
      if parts.count == 3 {
        let caller = try #require(Caller(rawValue: parts[0]), "\(text)")
        ownSlugs[caller, default: [:]][Int(parts[1]) ?? 0] = parts[2]
        continue
      }
      try #require(parts.count == 2, "\(text)")
      slugs[Int(parts[0]) ?? 0] = parts[1]
    }
    name = Self.withoutThings("\(words[0]) \(words[1])")
    method = words[0]
    path = words[1].hasPrefix("/") ? words[1] : "/api/v1/" + words[1]
    let route = Self.withoutThings("\(method) \(path)")
    operation = try #require(Self.operations[route], "\(text)")
    let access = operation.attributes.access
    // The others that need no token ignore one that is not valid.
    (needsToken, takesToken) = (access == .signedIn, operation == .verifyEmail)
    try #require(!takesToken || access == .optional, "\(text)")
    try #require(needsToken || Set(statuses.values).count == 1, "\(text)")
    (self.statuses, self.slugs, self.ownSlugs) = (statuses, slugs, ownSlugs)
  }
}

/// The owner of an event, a session, a received friend request and a sent one, and the other callers.
private struct Cast: Sendable {
  let app: TestApp
  let people: [Caller: Phone]
  let owner: Phone
  /// The owner's things, by the word before the id in a path, and others by a name in the table.
  var things: [String: String]
  /// The callers without a valid token, and their slugs. All tokens were the owner's or a guest's.
  let withoutAccess: [(who: String, token: String?, slug: String)]

  static func gather(_ number: Int, in app: TestApp) async throws -> Cast {
    let owner = try await app.signUp("owner\(number)")
    var people: [Caller: Phone] = [.owner: owner]
    for caller in Caller.allCases where caller != .owner { people[caller] = try await app.signUp("\(caller)\(number)") }
    let (gone, asker) = (try await app.signUp("gone\(number)"), try await app.signUp("asker\(number)"))
    let asked = try await app.signUp("asked\(number)")
    let blocked = try #require(people[.blocked])
    let coHost = try #require(people[.cohost])
    let guests = [people[.invitee], blocked, gone].compactMap(\.self)
    for friend in guests + [people[.friend], coHost].compactMap(\.self) {
      try await owner.accept(try await friend.sendFriendRequest(to: owner))
    }
    let event = try #require(try await owner.createEvent(inviting: guests)["id"].string)
    try await owner.addHost(coHost, to: event)
    let link = try await owner.createLink(to: event, #"{"kind": "answer"}"#)
    let visit = try await app.visit(link.token)
    let approving = try await owner.createLink(to: event, #"{"kind": "answer", "approval": true}"#)
    let pending = try await app.visit(approving.token)
    let calendar = try #require(app.dependencies.visitorTokens.calendar.token(of: visit.id, kid: app.visitorKid))
    let friend = try #require(people[.friend])
    let friends = try #require(try await friend.createEvent("Theirs")["id"].string)
    let offer = try await friend.offerHost(owner, to: friends)
    let request = try await asker.sendFriendRequest(to: owner)
    let sentRequest = try await owner.sendFriendRequest(to: asked)
    try await owner.block(blocked)
    let (open, ended) = (try await owner.signInAgain(), try await owner.signInAgain())
    return Cast(
      app: app, people: people, owner: owner,
      things: [
        "events": event, "friend-requests": request, "sessions": try open.session.description,
        "links": link.id, "POST links": link.token, "e": link.token,
        "g": visit.token, "visitors": "\(calendar).ics",
        "m": try #require(app.dependencies.mailGate.optOuts.keys.optOutToken(of: Mailbox("zoe@x.org"))),
        "validate": owner.id, "friends": owner.id, "blocks": owner.id, "DELETE friend-requests": sentRequest,
        "invitations": try #require(people[.invitee]).id, "hosts": try #require(people[.invitee]).id,
        "visitor": visit.id.description, "pending": pending.id.description, "cohost": coHost.id,
        "users": owner.id,
        "proposals": offer, "verify": "made-up", "undo": "made-up",
        "calendars": String(try await owner.makeCalendarLink().dropFirst("/calendars/".count)),
        "devices": try #require(try await owner.register(token: UUID().uuidString).json["id"].string),
      ],
      withoutAccess: try await withoutAccess(owner: owner, ended: ended, gone: gone))
  }

  /// Logs out, deletes an account, and waits until both tokens are refused.
  private static func withoutAccess(
    owner: Phone, ended: Phone, gone: Phone
  ) async throws -> [(who: String, token: String?, slug: String)] {
    let out = try await ended.send("POST", "auth/logout")
    #expect(out.status == 204, "\(out.body)")
    let deletion = try await gone.send("DELETE", "users/me", #"{"password": "\#(gone.password)"}"#)
    #expect(deletion.status == 204, "\(deletion.body)")
    for phone in [ended, gone] {
      try await eventually { try await phone.send("GET", "auth/sessions").status == 401 }
    }
    let expired = try await owner.app.dependencies.accessTokens.sign(
      user: owner.userID, session: try owner.session, now: Timestamp.now().adding(seconds: -1000))
    return [
      ("no token", nil, "no-token"), ("garbage", "garbage", "invalid-token"),
      ("an expired token", expired, "token-expired"),
      ("an ended session", ended.accessToken, "session-ended"), ("a deleted user", gone.accessToken, "session-ended"),
    ]
  }

  /// Calls a route. If it is a GET, also calls it with HEAD, which must not reveal or do more.
  ///
  /// - Parameter unknown: an id to name instead of the owner's things.
  func call(_ line: Line, by person: Phone, token: String?, naming unknown: String? = nil) async throws -> APIResponse {
    var path = ""
    var last = ""
    for segment in line.path.split(separator: "/").map(String.init) {
      // Some methods need another thing: only a sent friend request can be withdrawn.
      let name = segment.firstMatch(of: /:(\w+)}/).map { String($0.output.1) }
      let thing = name.map { things[$0] } ?? things["\(line.method) \(last)"] ?? things[last]
      let named = try #require(segment.hasPrefix("{") ? unknown ?? thing : segment, "\(line) names what?")
      path += "/" + named
      last = segment
    }
    if line.name == "GET users" { path += "?query=owner" }
    let body = try await body(of: line, by: person, naming: unknown ?? owner.id)
    let response = try await app.send(line.method, path, body: body, token: token)
    if line.method == "GET" {
      let head = try await app.send("HEAD", path, token: token)
      #expect(head.status == response.status && head.body.isEmpty, "HEAD \(path)")
    }
    return response
  }

  /// A valid body. If it names a user, it is the owner. The seven routes that take a mailed token or a provider's token
  /// get a made-up one, and refuse every caller alike.
  private func body(of line: Line, by person: Phone, naming id: String) async throws -> String? {
    let password = person.password
    switch line.name {
    case "POST auth/register":
      let name = "new-\(UUID().uuidString.prefix(18))"
      return #"{"username": "\#(name)", "email": "\#(name)@example.com", "password": "\#(password)"}"#
    case "POST auth/login": return #"{"login": "\#(person.username)", "password": "\#(password)"}"#
    case "POST auth/refresh":
      let token = try await person.signInAgain().refreshToken
      return #"{"refreshToken": "\#(token)"}"#
    case "POST auth/password-reset": return #"{"email": "\#(person.username)@example.com"}"#
    case "POST auth/password-reset/confirm": return #"{"token": "made-up", "newPassword": "\#(password) 2"}"#
    case "POST auth/email/verify", "POST auth/email/undo": return #"{"token": "made-up"}"#
    case "POST auth/code": return #"{"email": "\#(person.username)@example.com"}"#
    case "POST auth/code/confirm": return #"{"token": "made-up"}"#
    case "POST auth/apple", "POST auth/google": return #"{"idToken": "made-up", "nonce": "made-up"}"#
    case "POST auth/apple/notifications": return #"{"payload": "made-up"}"#
    case "POST auth/apple/link", "POST auth/google/link":
      return #"{"idToken": "made-up", "nonce": "made-up", "currentPassword": "\#(password)"}"#
    case "DELETE auth/apple", "DELETE auth/google": return #"{"currentPassword": "\#(password)"}"#
    case "POST auth/password": return #"{"currentPassword": "\#(password)", "newPassword": "\#(password) 2"}"#
    case "PATCH users/me": return #"{"displayName": "Another name"}"#
    case "PUT users/me/picture": return Sample.webpText
    case "DELETE users/me": return #"{"password": "\#(password)"}"#
    case "POST reports": return #"{"userId": "\#(id)", "reason": "spam"}"#
    case "POST friend-requests": return #"{"receiverId": "\#(id)"}"#
    case "POST events":
      return """
        {"title": "Dinner", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC", "inviteeIds": ["\(id)"]}
        """
    case "PATCH events/{id}": return #"{"title": "Dinner"}"#
    case "POST events/{id}/invitations": return #"{"userIds": ["\#(id)"]}"#
    case "PUT events/{id}/invitations/{userId}": return #"{"status": "maybe"}"#
    case "POST events/{id}/duplicate": return #"{"startTime": "2030-06-01T18:00:00Z", "invite": true}"#
    case "POST events/{id}/links": return #"{"kind": "answer"}"#
    case "PATCH events/{id}/links/{linkId}": return #"{"shows": "names"}"#
    case "PUT events/{id}/invitations/me": return #"{"status": "going"}"#
    case "POST cache/validate/{userId}": return "{}"
    case "POST notifications/read": return #"{"before": "2030-05-01T18:00:00Z"}"#
    case "PUT notification-preferences": return #"{"event-updated": false}"#
    case "PUT devices": return #"{"platform": "log", "token": "\#(UUID().uuidString)"}"#
    default: return nil
    }
  }
}
