import Postgres
import Testing

@testable import App

/// Limits on the number of friend requests.
@Suite struct FriendRequestLimitTests {
  private func ask(_ sender: Phone, _ receiver: Phone) async throws -> APIResponse {
    try await sender.send("POST", "friend-requests", #"{"receiverId": "\#(receiver.id)"}"#)
  }

  private func expectRefusal(
    _ response: APIResponse, for seconds: ClosedRange<Int>, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(response.status == 429, "\(response.body)", sourceLocation: sourceLocation)
    #expect(response.problem == "too-many-friend-requests", sourceLocation: sourceLocation)
    let wait = response.header("Retry-After").flatMap { Int($0) } ?? 0
    #expect(seconds.contains(wait), "\(wait)", sourceLocation: sourceLocation)
  }

  /// Inserts requests of one user to other users.
  private func plant(_ count: Int, of sender: Phone, status: String, in app: TestApp) async throws {
    try await app.database.batch(
      """
      INSERT INTO users (id, username, display_name)
      SELECT uuid_v7(), 'asked-' || \(status) || number, 'Asked' FROM generate_series(1, \(count)) AS number
      """,
      """
      INSERT INTO friend_requests (id, sender_id, receiver_id, status, closed_at)
      SELECT uuid_v7(), \(sender.userID), id, \(status), CASE WHEN \(status) <> 'pending' THEN now() END
      FROM users WHERE username LIKE 'asked-' || \(status) || '%'
      """)
  }

  @Test func `after two refused requests the next must wait a day, and each later one a week`() async throws {
    try await TestApp.run { app in
      let (ana, ben, cleo) = (try await app.signUp("ana"), try await app.signUp("ben"), try await app.signUp("cleo"))
      try await ben.decline(try await ana.sendFriendRequest(to: ben))
      try await ana.cancel(try await ana.sendFriendRequest(to: ben))
      let (day, week) = (86_400, 7 * 86_400)
      expectRefusal(try await ask(ana, ben), for: day - 60...day)
      // A refused request leaves nothing behind.
      #expect(try await ana.get("friend-requests?direction=sent")["items"].array.isEmpty)
      #expect(try await ben.get("friend-requests")["items"].array.isEmpty)
      #expect(try await app.takeNotifications().count == 1)

      try await app.letFriendRequestsAge(by: "23 hours")
      expectRefusal(try await ask(ana, ben), for: 3540...3600)
      try await app.letFriendRequestsAge(by: "1 hour")
      let third = try await ana.sendFriendRequest(to: ben)
      #expect(try await ana.sendFriendRequest(to: ben, expecting: 200) == third)
      for _ in 0..<2 {
        let pending = try await ana.get("friend-requests?direction=sent")["items"][0]["id"].string ?? ""
        try await ana.cancel(pending)
        try await app.letFriendRequestsAge(by: "1 day")
        expectRefusal(try await ask(ana, ben), for: week - day - 60...week - day)
        try await app.letFriendRequestsAge(by: "6 days")
        try await ana.sendFriendRequest(to: ben)
      }
      try await ben.decline(try await ana.sendFriendRequest(to: ben, expecting: 200))

      // The limit does not apply to the other user, to other receivers, or to a request that meets another.
      try await ana.sendFriendRequest(to: cleo)
      try await ben.sendFriendRequest(to: ana)
      try await ana.sendFriendRequest(to: ben, expecting: 200)
      try await app.takeNotifications()
    }
  }

  @Test func `a sender has at most a hundred pending requests, and sends at most fifty in a day`() async throws {
    try await TestApp.run { app in
      let (ana, ben, cleo) = (try await app.signUp("ana"), try await app.signUp("ben"), try await app.signUp("cleo"))
      try await plant(99, of: ana, status: "pending", in: app)
      expectRefusal(try await ask(ana, ben), for: 86_340...86_400)
      try await app.letFriendRequestsAge(by: "1 day")
      let last = try await ana.sendFriendRequest(to: ben)
      expectRefusal(try await ask(ana, cleo), for: 1...3600)
      try await ana.cancel(last)
      try await ana.sendFriendRequest(to: cleo)

      try await plant(50, of: ben, status: "accepted", in: app)
      expectRefusal(try await ask(ben, cleo), for: 86_340...86_400)
      try await app.letFriendRequestsAge(by: "23 hours")
      expectRefusal(try await ask(ben, cleo), for: 3540...3600)
      try await app.letFriendRequestsAge(by: "1 hour")
      try await ben.sendFriendRequest(to: cleo)
      try await app.takeNotifications()
    }
  }

  @Test func `concurrent requests and cancellations pass no more often than serial ones`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      try await app.withConnections(40) {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for _ in 0..<40 {
            group.addTask {
              // By the second attempt, an earlier request has certainly been cancelled.
              for _ in 0..<2 {
                let response = try await ask(ana, ben)
                #expect([200, 201, 429].contains(response.status), "\(response.body)")
                guard let id = response.json["id"].string else { continue }
                #expect(try await ana.send("DELETE", "friend-requests/\(id)").status == 200)
              }
            }
          }
          try await group.waitForAll()
        }
      }
      let sent: Int? = try await app.value("SELECT count(*) FROM friend_requests")
      #expect(sent == 2)
      expectRefusal(try await ask(ana, ben), for: 86_000...86_400)
    }
  }

  @Test func `of many concurrent requests only as many pass as the limit allows`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let others = try await app.crowd(12, around: ben)
      try await plant(45, of: ana, status: "accepted", in: app)
      let statuses = try await app.withConnections(12) {
        try await app.race(12) { try await ask(ana, others[$0]) }
      }
      #expect(statuses == [201: 5, 429: 7])
      try await app.takeNotifications()
    }
  }
}
