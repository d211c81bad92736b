import Postgres
import TestSupport
import Testing

@testable import App

/// Friend requests from accounts that have proven no address: they wait in a folder, and notify no one.
@Suite struct FilteredRequestTests {
  @Test func `a request from an unverified account waits in a folder, unnoticed`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana", isVerified: false), try await app.signUp("ben"))
      var request = ""
      #expect(try await ben.stale { request = try await ana.sendFriendRequest(to: ben) } == [])
      #expect(try await app.takeNotifications() == [])
      #expect(try await ben.get("friend-requests")["items"].array.isEmpty)
      let list = try await ben.send("GET", "friend-requests?direction=filtered")
      #expect(list.json["items"].array.map { $0["id"].string } == [request])
      #expect(list.json["items"][0]["filtered"].bool == true)
      #expect(list.json["timestamp"] == .null && list.header("ETag") == nil)
      let sent = try await ana.get("friend-requests?direction=sent")["items"]
      #expect(sent[0]["id"].string == request && sent[0]["filtered"].bool == true)
      #expect(try await ana.get("friend-requests?direction=filtered")["items"].array.isEmpty)
      #expect(try await ana.sendFriendRequest(to: ben, expecting: 200) == request)

      var accepted = APIResponse(status: 0, headers: [], body: "")
      let stale = try await app.stale(among: [ana, ben]) { accepted = try await ben.accept(request) }
      #expect(stale == ["ana": [.friends, .sentFriendRequests, .notifications], "ben": [.friends]])
      #expect(accepted.json["status"].string == "accepted" && accepted.json["filtered"].bool == false)
      #expect(try await app.takeNotifications().map { $0 == ("friend-accepted", ana) } == [true])
    }
  }

  @Test func `the folder has pages, and its requests are declined, cancelled and blocked as any other`() async throws {
    try await TestApp.run { app in
      let ben = try await app.signUp("ben")
      var senders: [(phone: Phone, request: String)] = []
      for name in ["ana", "cleo", "dev"] {
        let phone = try await app.signUp(name, isVerified: false)
        senders.append((phone, try await phone.sendFriendRequest(to: ben)))
      }
      let first = try await ben.get("friend-requests?direction=filtered&limit=2")
      #expect(first["items"].array.map { $0["sender"]["username"].string } == ["dev", "cleo"])
      let cursor = try #require(first["nextCursor"].string)
      let second = try await ben.get("friend-requests?direction=filtered&cursor=\(cursor)")
      #expect(second["items"].array.map { $0["sender"]["username"].string } == ["ana"])
      // The cursor belongs to this list.
      #expect(try await ben.send("GET", "friend-requests?cursor=\(cursor)").badFields == ["cursor"])

      let stale = try await ben.stale {
        try await ben.decline(senders[0].request)
        try await senders[1].phone.perform(
          "DELETE", "friend-requests/\(senders[1].request)", expecting: 200, sourceLocation: #_sourceLocation)
        try await ben.block(senders[2].phone)
      }
      #expect(stale == [.blocks])
      #expect(try await ben.get("friend-requests?direction=filtered")["items"].array.isEmpty)
      #expect(try await app.takeNotifications() == [])
    }
  }

  @Test func `a request in the opposite direction makes friends`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana", isVerified: false), try await app.signUp("ben"))
      try await ana.sendFriendRequest(to: ben)
      try await ben.sendFriendRequest(to: ana, expecting: 200)
      #expect(try await app.takeNotifications().map(\.type) == ["friend-accepted", "friend-accepted"])
      #expect(try await ben.get("friends")["items"].array.count == 1)
    }
  }

  /// The ways to prove an address, and to link an identity.
  enum Proof: CaseIterable {
    case link, linkWithoutSession, code, reset, identity
  }

  @Test(arguments: Proof.allCases) func `after a proof, the request moves, and notifies`(_ proof: Proof) async throws {
    try await TestApp.runWithProviders { app, identity in
      let (ana, ben) = (try await app.signUp("ana", isVerified: false), try await app.signUp("ben"))
      let cleo = try await app.signUp("cleo")
      let verification = try await app.takeMails().first { $0.to == "ana@example.com" }?.token
      let request = try await ana.sendFriendRequest(to: ben)
      let declined = try await ana.sendFriendRequest(to: cleo)
      try await cleo.decline(declined)
      try await app.takeNotifications()
      let stale = try await app.stale(among: [ben, cleo]) {
        switch proof {
        case .link: #expect(try await ana.verify(try #require(verification)).status == 204)
        case .linkWithoutSession: #expect(try await app.verify(try #require(verification)).status == 204)
        case .code:
          let code = try await app.takeCode(of: "ana@example.com")
          #expect(try await app.confirmCode(code.code, of: "ana@example.com").status == 200)
        case .reset:
          #expect(try await app.askForReset("ana@example.com").status == 202)
          let token = try await app.takeToken("mail-reset-password")
          #expect(try await app.confirmReset(token, "another long password").status == 204)
        case .identity: #expect(try await ana.link(.google, try identity.token(.google, "1")).status == 204)
        }
      }
      #expect(stale == ["ben": [.friendRequests, .notifications]])
      let notices = try await app.takeNotifications()
      #expect(notices.map { $0 == ("friend-request", ben) } == [true])
      #expect(notices.first?.payload["requestId"].string == request)
      #expect(try await ben.get("friend-requests")["items"].array.map { $0["id"].string } == [request])
      #expect(try await ben.get("friend-requests?direction=filtered")["items"].array.isEmpty)
      try await app.takeMails()
    }
  }

  @Test func `a request that is sent while its sender verifies the address does not stay in the folder`() async throws {
    try await TestApp.run { app in
      let ben = try await app.signUp("ben")
      for round in 0..<10 {
        let ana = try await app.signUp("ana\(round)", isVerified: false)
        let token = try #require(try await app.takeMails().first { $0.to == "ana\(round)@example.com" }?.token)
        async let sent = ana.sendFriendRequest(to: ben)
        async let verified = ana.verify(token)
        let request = try await sent
        #expect(try await verified.status == 204)
        #expect(try await ben.get("friend-requests/\(request)")["filtered"].bool == false)
        #expect(try await app.takeNotifications().map(\.type) == ["friend-request"])
      }
    }
  }
}
