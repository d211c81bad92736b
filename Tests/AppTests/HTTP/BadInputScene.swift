import Foundation
import Postgres
import Testing
import TestSupport

@testable import App

/// Ana and Dev are friends. Ben and Cleo have sent Ana a friend request, and Ben has sent Finn one. Dev is invited to
/// Ana's event. Hugo has no friends.
struct BadInputScene: Sendable {
  let app: TestApp
  let ana: Phone
  let ben: Phone
  let dev: Phone
  let finn: Phone
  let hugo: Phone
  /// Ends her session. She has another one.
  let gina: Phone
  let ginasOther: Session.ID
  /// The last part of the URL of Dev's picture.
  let picture: String
  /// The last part of the URL of Dev's calendar feed.
  let calendar: String
  /// The tokens that were mailed to Vera, to Uma's former address, and to Cleo.
  let verifyToken: String
  let undoToken: String
  let resetToken: String
  /// The token that was mailed to Iris with a code.
  let codeToken: String
  /// The identity tokens of a new user and of Ana.
  let newcomer: (apple: String, google: String)
  let notification: String
  let mine: (apple: String, google: String)
  /// The friend requests of Ben and Cleo to Ana.
  let request: String
  let otherRequest: String
  /// Ben's friend request to Finn.
  let sentRequest: String
  let event: String
  /// Ana's links to the event.
  let link: (id: String, token: String)
  let otherLink: (id: String, token: String)
  /// A visitor of the event.
  let visit: Visit
  /// The last part of the URL of the visitor's calendar.
  let visitorCalendar: String
  /// Dev's device.
  let device: String
  /// Offers to Ben to host Dev's events.
  let offers: [String]

  /// - Parameter body: must leave the service ready.
  static func play(_ body: @escaping @Sendable (BadInputScene) async throws -> Void) async throws {
    let environment = [
      "MUSTER_THROTTLING": "off", "MUSTER_APPLE_APP_IDS": "ABCDE12345.com.example.app",
      "MUSTER_ANDROID_PACKAGE": "com.example.app",
      "MUSTER_ANDROID_FINGERPRINTS": Array(repeating: "A1", count: 32).joined(separator: ":"),
    ]
    try await TestApp.runWithProviders(environment) { app, identity in
      let (ana, dev) = try await app.friends("ana", "dev")
      let ben = try await app.signUp("ben")
      let uma = try await app.signUp("uma")
      try await app.takeMails()
      try await app.database.execute("UPDATE users SET email_verified_at = now() WHERE id = \(uma.userID)")
      try await uma.editProfile(#"{"email": "new@example.com", "currentPassword": "\#(uma.password)"}"#)
      _ = try await uma.verify(try await app.takeToken("mail-verify-email"))
      let undoToken = try await app.takeToken("mail-email-changed")
      _ = try await app.signUp("vera", isVerified: false)
      let verifyToken = try await app.takeToken("mail-verify-email")
      let cleo = try await app.signUp("cleo")
      _ = try await app.askForReset("cleo@example.com")
      let resetToken = try await app.takeToken("mail-reset-password")
      _ = try await app.signUp("iris")
      let codeToken = try await app.takeCode(of: "iris@example.com").token
      let gina = try await app.signUp("gina")
      let ginasOther = try await gina.signInAgain().session
      let finn = try await app.signUp("finn")
      let event: String = try #require(try await ana.createEvent(inviting: [dev])["id"].string)
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let otherLink = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let visit = try await app.visit(otherLink.token)
      let page = try await visit.page().body
      let visitorCalendar = try #require(page.firstMatch(of: /calendars\/visitors\/([A-Za-z0-9_-]+\.ics)/)?.1)
      try await app.befriend(dev, ben)
      var offers: [String] = []
      for title in ["One", "Two"] {
        let hosted = try await dev.createEvent(title)["id"].string ?? ""
        offers.append(try await dev.offerHost(ben, to: hosted))
      }
      try await body(
        BadInputScene(
          app: app, ana: ana, ben: ben, dev: dev, finn: finn,
          hugo: try await app.signUp("hugo"), gina: gina, ginasOther: ginasOther,
          picture: String(try await dev.show(Sample.ascii(Sample.webpText)).suffix(24)),
          calendar: String(try await dev.makeCalendarLink().dropFirst("/calendars/".count)), verifyToken: verifyToken,
          undoToken: undoToken, resetToken: resetToken, codeToken: codeToken,
          newcomer: (try identity.token(.apple, "newcomer"), try identity.token(.google, "newcomer")),
          notification: try identity.notification("consent-revoked", of: "unknown"),
          mine: (try identity.token(.apple, "ana"), try identity.token(.google, "ana")),
          request: try await ben.sendFriendRequest(to: ana), otherRequest: try await cleo.sendFriendRequest(to: ana),
          sentRequest: try await ben.sendFriendRequest(to: finn),
          event: event, link: link, otherLink: otherLink, visit: visit, visitorCalendar: String(visitorCalendar),
          device: try #require(try await dev.register(token: "dev").json["id"].string), offers: offers))
      try await app.takeNotifications()
      #expect(try await app.send("GET", "/health/ready").status == 200)
    }
  }

  /// Runs `check` for the calls that are meant, one after the other.
  static func each(
    _ isMeant: @escaping @Sendable (BadInputCall) -> Bool = { _ in true },
    _ check: @escaping @Sendable (BadInputScene, BadInputCall) async throws -> Void
  ) async throws {
    try await play { scene in
      for call in scene.calls where isMeant(call) { try await check(scene, call) }
    }
  }

  /// Sends a call of the table. Arguments replace its values.
  func send(
    _ call: BadInputCall, path: String? = nil, body: String? = nil, headers: [(String, String)] = [],
    token: String? = nil
  ) async throws -> APIResponse {
    try await app.send(
      call.method, path ?? call.path, body: body ?? call.body, headers: headers, token: token ?? call.token)
  }

  /// A call of each act that takes JSON or no body, in an order in which all succeed.
  var calls: [BadInputCall] {
    var known: Set<String> = []
    return Act.all.filter { !Self.forms.contains($0.template) || $0.isRead }.filter { known.insert($0.name).inserted }
      .map { act in
        let actor = actor(of: act)
        return BadInputCall(
          act, by: act.needsToken ? actor : nil, naming: things(of: act), body: body(of: act, by: actor),
          wrong: WrongBodies.table[act.name, default: []].map { ($0.body(naming: ids), $0.fields) })
      }
  }

  func call(_ name: String) throws -> BadInputCall { try #require(calls.first { $0.act.name == name }) }

  private func actor(of act: Act) -> Phone {
    switch act.name {
    case "endSession", "logOut": gina
    case "changePassword": finn
    case "deleteMe": hugo
    case "cancelFriendRequest", "endFriendship", "block", "unblock": ben
    case "listProposals", "acceptProposal", "declineProposal": ben
    case "listInvitations", "answerInvitation", "joinByLink", "removeDevice": dev
    default: ana
    }
  }

  /// The objects in the act's path.
  private func things(of act: Act) -> [String: String] {
    var things = [
      "event": event, "link": link.id, "linkToken": link.token, "request": request, "sentRequest": sentRequest,
      "session": ginasOther.description, "proposal": offers[0], "device": device, "invitee": dev.id, "user": ana.id,
      "picture": picture, "calendar": calendar, "visit": visit.token, "visitorCalendar": visitorCalendar,
      "mailToken": verifyToken,
      "optOut": app.dependencies.mailGate.optOuts.keys.optOutToken(of: Mailbox("zoe@x.org")) ?? "",
    ]
    switch act.name {
    case "getUser": things["user"] = ben.id
    case "endFriendship": things["user"] = finn.id
    case "block", "unblock": things["user"] = gina.id
    case "declineFriendRequest": things["request"] = otherRequest
    case "declineProposal": things["proposal"] = offers[1]
    case "getSharePage", "getReportPage": things["linkToken"] = otherLink.token
    case "getUndoingPage": things["mailToken"] = undoToken
    default: break
    }
    return things
  }

  private func body(of act: Act, by actor: Phone) -> String? {
    if act.name == "putPicture" { return Sample.webpText }
    return act.body { word in
      switch word {
      case "other": ["createEvent", "inviteToEvent"].contains(act.name) ? dev.id : finn.id
      case "me": actor.username
      case "password": actor.password
      case "refreshToken": actor.refreshToken
      case "verifyToken": verifyToken
      case "undoToken": undoToken
      case "resetToken": resetToken
      case "codeToken": codeToken
      case "appleToken": mine.apple
      case "googleToken": mine.google
      case "newAppleToken": newcomer.apple
      case "newGoogleToken": newcomer.google
      case "appleNotification": notification
      default: "nina"
      }
    }
  }

  /// These take no JSON: see VisitorFormTests, VisitorReportTests, VisitorPageTests and ProvingTests.
  static let forms = [
    "/e/{token}", "/e/{token}/report", "/g/{token}", "/g/{token}/unsubscribe", "/verify/{token}", "/undo/{token}",
    "/m/{token}",
  ]

  /// The texts for the words in the table of wrong bodies.
  private var ids: [String: String] {
    [
      "ana": ana.id, "ben": ben.id, "dev": dev.id, "finn": finn.id, "event": event, "unknown": UUID().uuidString,
      "resetToken": resetToken, "verifyToken": verifyToken,
      "picnic": #""title": "Picnic", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC""#,
    ]
  }
}

/// A valid request, and invalid bodies for it.
struct BadInputCall: Sendable, CustomStringConvertible {
  private static let lists: Set = [
    "listSessions", "listFriends", "listFriendRequests", "listBlocks", "listEvents", "listGuests", "listInvitations",
    "listProposals", "listNotifications", "listDevices",
  ]

  let act: Act
  /// Nil for a route that needs no token.
  let token: String?
  let path: String
  private let things: [String: String]
  let body: String?
  /// Invalid bodies, and the fields that the response must name.
  let wrong: [(body: String, fields: Set<String>)]

  init(
    _ act: Act, by caller: Phone?, naming things: [String: String], body: String?,
    wrong: [(body: String, fields: Set<String>)]
  ) {
    self.act = act
    token = caller?.accessToken
    path = act.path { things[$0] ?? "" } + (act.name == "searchUsers" ? "?query=ben" : "")
    self.things = things
    self.body = body
    self.wrong = wrong
  }

  var method: String { act.method }
  /// As in the router.
  var template: String { act.template }
  var isList: Bool { Self.lists.contains(act.name) }
  var bodyIsOptional: Bool { act.name == "validateCache" }
  /// False for a picture, and for no body.
  var takesJSON: Bool { body != nil && act.name != "putPicture" }
  /// Whether all users get the same response for the id in the path.
  var isForAll: Bool { act.name == "getUser" }

  var description: String { "\(method) \(template)" }

  /// The path with another first thing.
  func path(id: String) -> String {
    var isFirst = true
    return act.path { name in
      defer { isFirst = false }
      return isFirst ? id : things[name] ?? ""
    }
  }

  /// The number of parameters in the template.
  var parameters: Int { template.split(separator: "/").count { $0.hasPrefix("{") } }

  func matches(_ path: String) -> Bool {
    let (mine, its) = (template.split(separator: "/"), path.prefix { $0 != "?" }.split(separator: "/"))
    return mine.count == its.count && zip(mine, its).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
  }
}

/// A body that breaks a rule, as `wrong-bodies.txt` lists them.
struct WrongBodies: Sendable {
  /// By the names of operations.
  static let table = read()

  private let sample: String
  /// The fields that the response must name.
  let fields: Set<String>

  /// - Parameter ids: what its words stand for.
  func body(naming ids: [String: String]) -> String {
    let named = ids.reduce(sample) { $0.replacing("<\($1.key)>", with: $1.value) }
    let listed = named.replacing(/\[("[^"]+") \* (\d+)\]/) { match in
      "[\(Array(repeating: match.1, count: Int(match.2) ?? 0).joined(separator: ","))]"
    }
    return listed.replacing(/"(\w)" \* (\d+)/) { "\"\(String($0.1).repeated(Int($0.2) ?? 0))\"" }
  }

  private static func read() -> [String: [WrongBodies]] {
    let file = Program.checkout.appending(path: "Tests/AppTests/HTTP/wrong-bodies.txt")
    let lines = (try? String(contentsOf: file, encoding: .utf8))?.split(separator: "\n") ?? []
    var table: [String: [WrongBodies]] = [:]
    var names: [Substring] = []
    for line in lines where !line.hasPrefix("#") {
      guard let arrow = line.ranges(of: " -> ").last else {
        names = line.split(separator: " ")
        continue
      }
      let fields = line[arrow.upperBound...].split(separator: ", ").map(String.init)
      let wrong = WrongBodies(
        sample: line[..<arrow.lowerBound].trimmingCharacters(in: .whitespaces), fields: Set(fields))
      for name in names { table[String(name), default: []].append(wrong) }
    }
    return table
  }
}
