import Foundation
import HTTPServer
import Postgres
import Testing
import TestSupport

@testable import App

/// Who may call what, and whose lists it touches: every kind of caller calls each route. They follow from ``Act/table``.
/// `OpenAPITests` compares the routes with the document, so that a route of the document without a line there also fails.
/// `Tests/Golden/rights.txt` has what each caller got.
@Suite struct AuthorizationTests {
  @Test func `every route has a line in the table, and every line a route`() async throws {
    try await TestApp.run { app in
      #expect(Set(Act.all.map { "\($0.method) \($0.template)" }).symmetricDifference(app.routes).sorted() == [])
      #expect(Set(Act.all.map(\.description)).count == Act.all.count)
    }
  }

  @Test func `every caller gets the status in the table, and touches its lists`() async throws {
    let environment = [
      "MUSTER_THROTTLING": "off", "MUSTER_APPLE_CLIENT_IDS": "app.example", "MUSTER_GOOGLE_CLIENT_IDS": "app.example",
    ]
    try await TestApp.run(environment) { app in
      let acts = Act.all
      var gathered = try await Cast.gather(acts.count, in: app)
      gathered.things["picture"] = String(try await gathered.owner.show(Sample.png()).suffix(24))
      let readers = gathered
      var rights: [Int: String] = [:]
      try await withThrowingTaskGroup(of: (Int, String).self) { group in
        for (number, act) in acts.enumerated() {
          // More concurrent lines would only slow each other down.
          if number >= 6, let (number, right) = try await group.next() { rights[number] = right }
          group.addTask {
            // Each write has its own cast, so that one call does not spoil the next.
            let cast = act.isRead ? readers : try await Cast.gather(number, in: app)
            let refusals = try await Self.checkRefusals(act, cast)
            var answers: [Answer] = []
            var touches: [String] = []
            for caller in Caller.allCases {
              let stamps = try await cast.stamps()
              answers.append(try await Self.check(act, cast, caller))
              let moved = cast.touches(from: stamps, to: try await cast.stamps())
              if !moved.isEmpty { touches = moved }
            }
            #expect(touches.joined(separator: "; ") == act.touches, "\(act)")
            return (number, Self.rights(to: act, refusals, answers, cast))
          }
        }
        for try await (number, right) in group { rights[number] = right }
      }
      try await app.takeNotifications()
      let text = acts.indices.compactMap { rights[$0] }.joined(separator: "\n")
      // The head of the file and an empty line come first.
      try Golden.compare("rights.txt", with: "\n" + text, ignoring: "#")
    }
  }

  /// A response, and who got it.
  private struct Answer {
    let caller: String
    let status: Int
    let slug: String?

    init(_ caller: String, _ response: APIResponse) {
      (self.caller, status) = (caller, response.status)
      slug = response.status < 400 ? nil : response.problem
    }

    var outcome: String { slug.map { "\(status) \($0)" } ?? "\(status)" }
  }

  /// Who gets what, for `Tests/Golden/rights.txt`: a line for each outcome.
  ///
  /// - Parameter refusals: the responses to callers without a valid token, in the order of ``Cast/withoutAccess``.
  private static func rights(to act: Act, _ refusals: [Answer], _ answers: [Answer], _ cast: Cast) -> String {
    var callers: [String: [String]] = [:]
    // Routes that need no token may also respond with 401, for another reason.
    let isClosed = zip(refusals, cast.withoutAccess).allSatisfy { $0.slug == $1.slug }
    if isClosed { callers["401"] = ["without a valid token"] }
    for answer in isClosed ? answers : refusals + answers { callers[answer.outcome, default: []].append(answer.caller) }
    let lines = callers.sorted { $0.key < $1.key }.map { outcome, callers in
      "  \(outcome): \(callers.count == refusals.count + answers.count ? "anyone" : callers.joined(separator: ", "))\n"
    }
    return "\(act.name): \(act)\n\(lines.joined())"
  }

  /// A caller without a valid token gets 401 and the reason, or is served if the route needs no token.
  private static func checkRefusals(_ act: Act, _ cast: Cast) async throws -> [Answer] {
    var answers: [Answer] = []
    for (who, token, slug) in cast.withoutAccess {
      let response = try await cast.call(act, by: cast.owner, token: token)
      answers.append(Answer(who, response))
      let comment: Comment = "\(act) by \(who): \(response.status) \(response.body)"
      guard act.needsToken || act.takesToken && token != nil else {
        #expect(response.status == act.statuses[.owner], comment)
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
    return answers
  }

  /// A call with a valid token. A hidden thing gets the same response as one that does not exist.
  private static func check(_ act: Act, _ cast: Cast, _ caller: Caller) async throws -> Answer {
    let person = try #require(cast.people[caller])
    let response = try await cast.call(act, by: person, token: person.accessToken)
    let comment: Comment = "\(act) by the \(caller): \(response.status) \(response.body)"
    let answer = Answer(caller.rawValue, response)
    #expect(response.status == act.statuses[caller], comment)
    guard response.status >= 400 else { return answer }
    #expect(response.problem == act.slug(of: response.status, for: caller), comment)
    guard response.status == 404 else { return answer }
    let unknown = try await cast.call(
      act, by: person, token: person.accessToken, naming: UUID().uuidString.lowercased())
    #expect(unknown.status == 404 && unknown.withoutRequestID == response.withoutRequestID, comment)
    return answer
  }
}

private typealias Caller = Act.Caller

/// The owner of an event, a session, a received friend request and a sent one, and the other callers.
private struct Cast: Sendable {
  let app: TestApp
  let people: [Caller: Phone]
  let owner: Phone
  /// The owner's things, by their names in the table.
  var things: [String: String]
  /// Everyone whose lists a call may touch, by the names in the table.
  let touched: [(name: String, id: User.ID)]
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
        "event": event, "request": request, "sentRequest": sentRequest, "proposal": offer,
        "session": try open.session.description, "link": link.id, "linkToken": link.token,
        "visit": visit.token, "visitorCalendar": "\(calendar).ics",
        "optOut": try #require(app.dependencies.mailGate.optOuts.keys.optOutToken(of: Mailbox("zoe@x.org"))),
        "user": owner.id, "invitee": try #require(people[.invitee]).id, "visitor": visit.id.description,
        "pending": pending.id.description, "cohost": coHost.id, "mailToken": "made-up",
        "calendar": String(try await owner.makeCalendarLink().dropFirst("/calendars/".count)),
        "device": try #require(try await owner.register(token: UUID().uuidString).json["id"].string),
      ],
      touched: Caller.allCases.compactMap { caller in people[caller].map { (caller.rawValue, $0.userID) } }
        + [("asker", asker.userID), ("asked", asked.userID)],
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

  /// The stamps of everyone, before any worker has fanned out.
  func stamps() async throws -> [User.ID: Stamps] {
    try await Stamps.read(of: touched.map(\.id), in: app.database)
  }

  /// Whose stamps differ, and which.
  func touches(from old: [User.ID: Stamps], to new: [User.ID: Stamps]) -> [String] {
    touched.compactMap { name, id in
      let moved = App.Collection.allCases.filter { old[id]?[$0] != new[id]?[$0] }
      return moved.isEmpty ? nil : "\(name): \(moved.map(\.rawValue).joined(separator: ", "))"
    }
  }

  /// Calls a route. If it is a GET, also calls it with HEAD, which must not reveal or do more.
  ///
  /// - Parameter unknown: an id to name instead of the owner's things.
  func call(_ act: Act, by person: Phone, token: String?, naming unknown: String? = nil) async throws -> APIResponse {
    let path =
      try act.path { try #require(unknown ?? things[$0], "\(act) names what?") }
      + (act.name == "searchUsers" ? "?query=owner" : "")
    let body = try await body(of: act, by: person, naming: unknown ?? owner.id)
    let response = try await app.send(act.method, path, body: body, token: token)
    if act.isRead {
      let head = try await app.send("HEAD", path, token: token)
      #expect(head.status == response.status && head.body.isEmpty, "HEAD \(path)")
    }
    return response
  }

  /// A valid body. If it names a user, it is the owner. The routes that take a mailed token or a provider's token get a
  /// made-up one, and refuse every caller alike.
  private func body(of act: Act, by person: Phone, naming id: String) async throws -> String? {
    if act.name == "putPicture" { return Sample.webpText }
    let refreshToken = act.name == "refresh" ? try await person.signInAgain().refreshToken : ""
    return act.body { word in
      switch word {
      case "other": id
      case "me": person.username
      case "password": person.password
      case "refreshToken": refreshToken
      case "new": "new-\(UUID().uuidString.prefix(18))"
      default: "made-up"
      }
    }
  }
}
