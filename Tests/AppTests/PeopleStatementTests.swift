import Postgres
import Testing

@testable import App

/// How many statements a call costs that is about users and everything that belongs to them.
@Suite struct PeopleStatementTests {
  /// The account, each part of each section, and a check that the account still exists. Each is read in a transaction of
  /// its own, as long as a part has fewer than 500 rows.
  private static let ofExport = 3 * (Export.Section.all.map(\.parts.count).reduce(0, +) + 2)

  /// Ana's calls in order, and how many statements each costs, including BEGIN and COMMIT. ``gather(_:in:)`` has the
  /// values in braces.
  private static let calls: [(name: String, call: String, body: String?, statements: Int)] = [
    ("the caller's profile", "GET users/me", nil, 1),
    ("a friend's profile", "GET users/{blocked}", nil, 1),
    // Also BEGIN and COMMIT.
    ("a search", "GET users?query=guest", nil, 3),
    ("recommendations", "GET users/recommended", nil, 3),
    ("friends", "GET friends?limit=100", nil, 1),
    ("requests received", "GET friend-requests?direction=incoming&limit=100", nil, 1),
    ("requests sent", "GET friend-requests?direction=sent&limit=100", nil, 1),
    ("blocks", "GET blocks?limit=100", nil, 1),
    ("invitations of one kind", "GET invitations?status=going&limit=100", nil, 1),
    ("an event for calendars", "GET events/{event}/calendar.ics", nil, 1),
    ("stale collections", "POST cache/validate/{ana}", "{}", 1),
    // The stamps, and each of the collections.
    ("stale collections with items", "POST cache/validate/{ana}?include=items,digests", "{}", 10),
    ("stale collections with changes", "POST cache/validate/{ana}?include=changes", "{}", 10),
    ("friends with digests", "GET friends?limit=100&include=digests", nil, 1),
    ("a picture", "GET {picture}", nil, 1),
    ("a picture's head", "HEAD {picture}", nil, 1),
    ("the inbox", "GET notifications?limit=100", nil, 1),
    ("marking", "POST notifications/read", #"{"ids": [{items}]}"#, 6),
    ("marking again", "POST notifications/read", #"{"before": "2100-01-01T00:00:00Z"}"#, 6),
    ("preferences", "GET notification-preferences", nil, 1),
    ("choosing", "PUT notification-preferences", "{choices}", 9),
    ("devices", "GET devices", nil, 1),
    ("registering a device", "PUT devices", #"{"platform": "log", "token": "new{size}"}"#, 8),
    ("removing a device", "DELETE devices/{device}", nil, 3),
    ("logging out", "POST auth/logout", nil, 4),
    ("an export", "GET users/me/export", nil, ofExport),
    ("sending a request", "POST friend-requests", #"{"receiverId": "{asked}"}"#, 13),
    ("sending it again", "POST friend-requests", #"{"receiverId": "{asked}"}"#, 4),
    ("asking a user who has asked", "POST friend-requests", #"{"receiverId": "{met}"}"#, 15),
    ("accepting", "POST friend-requests/{accepted}/accept", nil, 11),
    ("declining", "POST friend-requests/{declined}/decline", nil, 9),
    ("taking back", "DELETE friend-requests/{takenBack}", nil, 12),
    ("unfriending", "DELETE friends/{unfriended}", nil, 7),
    ("blocking", "PUT blocks/{blocked}", nil, 19),
    ("unblocking", "DELETE blocks/{unblocked}", nil, 8),
    ("reporting", "POST reports", #"{"userId": "{asked}", "reason": "spam"}"#, 8),
    ("reporting again", "POST reports", #"{"userId": "{asked}", "reason": "spam"}"#, 4),
    ("another bio", "PATCH users/me", #"{"bio": "Climbs."}"#, 8),
    ("another name", "PATCH users/me", #"{"displayName": "Anita"}"#, 10),
    ("another username", "PATCH users/me", #"{"username": "anita{size}"}"#, 14),
    ("another picture", "PUT users/me/picture", Sample.webpText, 13),
    ("the same picture", "PUT users/me/picture", Sample.webpText, 5),
    ("no picture", "DELETE users/me/picture", nil, 10),
    // Ten of them verify the password.
    ("deleting the account", "DELETE users/me", #"{"password": "{password}"}"#, 63),
  ]

  @Test func `user calls cost the same number of statements, whatever the number of relations`()
    async throws
  {
    let log = StatementLog()
    try await TestApp.run(logger: log.logger) { app in
      for size in [1, 40] {
        let (ana, words) = try await Self.gather(size, in: app)
        let other = try await ana.signInAgain()
        for number in 1..<min(size, 18) { try await other.register(token: "\(size)-\(number)") }
        // Slow reads have connections of their own, which they open.
        for path in ["users?query=guest", "users/recommended"] { _ = try await ana.get(path) }
        func filled(_ text: String) -> String {
          words.reduce(text) { text, word in text.replacing("{\(word.key)}", with: word.value) }
        }
        for (name, call, body, expected) in Self.calls {
          let parts = filled(call).split(separator: " ").map(String.init)
          var status = 0
          let statements = try await log.statements {
            let phone = name == "logging out" ? other : ana
            status = try await phone.send(parts[0], parts[1], body.map { filled($0) }).status
          }
          #expect((200..<300).contains(status), "\(name): \(status)")
          #expect(statements.count == expected, "\(name), \(size): \(statements)")
        }
      }
      try await app.takeNotifications()
    }
  }

  /// - Parameter size: the number of Ana's friends, requests in each direction, blocks, events and invitations. There
  ///   are a few more of some.
  private static func gather(_ size: Int, in app: TestApp) async throws -> (ana: Phone, words: [String: String]) {
    let ana = try await app.signUp("ana\(size)")
    let friends = try await app.crowd(size + 4, around: ana, named: "friend\(size)-")
    let (blocked, waiting, host) = (friends[1], friends[2], friends[3])
    try await app.befriend(host, waiting)
    var strangers = try await app.crowd(3 * size + 6, around: host, named: "stranger\(size)-")[...]
    let asked = strangers.removeFirst()
    let met = strangers[strangers.startIndex]
    var received: [String] = []
    for _ in 0..<size + 3 { received.append(try await strangers.removeFirst().sendFriendRequest(to: ana)) }
    var sent = ""
    for _ in 0..<size + 1 { sent = try await ana.sendFriendRequest(to: strangers.removeFirst()) }
    for stranger in strangers { try await ana.block(stranger) }
    var event = ""
    // A guest waits for each place, which becomes free when its holder is blocked or deletes their account.
    for number in 0..<size {
      event = try await ana.createEvent("Hers \(number)", inviting: [blocked, waiting], capacity: 1)["id"].string ?? ""
      let theirs = try await host.createEvent("Theirs \(number)", inviting: [ana, waiting], capacity: 1)["id"].string
      for guest in [blocked, waiting] { try await guest.answer("going", to: event) }
      for guest in [ana, waiting] { try await guest.answer("going", to: theirs ?? "") }
    }
    let device = try await ana.register(token: "first\(size)").json["id"].string ?? ""
    try await app.fileNotifications(size, for: ana)
    let items = try await ana.get("notifications?limit=100")["items"].array.compactMap { $0["id"].string }
    #expect(items.count == size)
    let choices = Notice.Kind.optional.prefix(size).map { "\"\($0.rawValue)\": false" }
    let words = [
      "items": items.map { "\"\($0)\"" }.joined(separator: ", "),
      "choices": "{\(choices.joined(separator: ", "))}", "device": device,
      "ana": ana.id, "size": "\(size)", "password": ana.password, "event": event, "asked": asked.id, "met": met.id,
      "picture": try await ana.show(Sample.png()).replacing(app.url, with: ""), "accepted": received[1],
      "declined": received[2], "takenBack": sent, "unfriended": friends[0].id, "blocked": blocked.id,
      "unblocked": strangers.first?.id ?? "",
    ]
    return (ana, words)
  }
}
