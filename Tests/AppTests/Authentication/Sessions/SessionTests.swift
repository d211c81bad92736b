import Foundation
import Postgres
import Testing

@testable import App

@Suite struct SessionTests {
  @Test func `a registration logs in and returns the profile`() async throws {
    try await TestApp.run { app in
      let response = try await app.send(
        "POST", "auth/register",
        body:
          #"{"username": "Ana", "email": "ana@example.com", "password": "correct horse", "displayName": " Ana D. "}"#)
      #expect(response.status == 201)
      #expect(response.json["tokenType"].string == "Bearer")
      #expect(response.json["expiresIn"].int == 900)
      #expect(response.json["user"]["displayName"].string == "Ana D.")
      #expect(response.header("Cache-Control") == "no-store")
      let ana = try Phone(app, "Ana", response)
      let me = try await ana.get("users/me")
      #expect(me["email"].string == "ana@example.com")
      #expect(
        me.keys == [
          "id", "username", "displayName", "bio", "pictureUrl", "email", "emailVerified", "pendingEmail", "hasPassword",
          "identities", "requestsFrom", "findableBy", "createdAt", "timestamp",
        ])
    }
  }

  @Test func `usernames and addresses are unique, ignoring case`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      let name = try await app.send(
        "POST", "auth/register", body: #"{"username": "ANA", "email": "x@example.com", "password": "correct horse"}"#)
      #expect(name.status == 409)
      #expect(name.problem == "username-taken")
      let address = try await app.send(
        "POST", "auth/register", body: #"{"username": "x", "email": "ANA@example.com", "password": "correct horse"}"#)
      #expect(address.status == 422)
      let other = try await app.send(
        "POST", "auth/register", body: #"{"username": "xyz", "email": "ANA@example.com", "password": "correct horse"}"#)
      #expect(other.problem == "email-taken")
    }
  }

  @Test func `a login takes the username or the address, in any case`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      for login in ["ana", "ANA", "ana@example.com", "Ana@Example.COM"] {
        let response = try await app.logIn(login, "correct horse ana", device: "iPhone")
        #expect(response.status == 200, "\(login)")
        #expect(response.json["user"]["username"].string == "ana")
      }
      #expect(try await app.value("SELECT count(*) FROM sessions WHERE device = 'iPhone'") == 4)
    }
  }

  @Test func `the same password in another Unicode form is accepted`() async throws {
    try await TestApp.run { app in
      let composed = "caf\u{e9} cr\u{e8}me"
      let decomposed = "cafe\u{301} cre\u{300}me"
      let response = try await app.send(
        "POST", "auth/register",
        body: #"{"username": "ana", "email": "ana@example.com", "password": "\#(composed)"}"#)
      #expect(response.status == 201)
      let login = try await app.logIn("ana", decomposed)
      #expect(login.status == 200)
    }
  }

  @Test func `a password's length is counted in the form that is hashed`() async throws {
    try await TestApp.run { app in
      // Eight scalars as typed, four in the form that is hashed.
      let short = String(repeating: "e\u{301}", count: 4)
      let response = try await app.send(
        "POST", "auth/register", body: #"{"username": "ana", "email": "a@example.com", "password": "\#(short)"}"#)
      #expect(response.badFields == ["password"])
    }
  }

  @Test func `only costs that scrypt and a server can handle are accepted`() {
    for good in ["ln=15,r=8,p=3", "ln=4,r=8,p=1", "ln=18,r=8,p=1"] { #expect(Passwords.Cost(good) != nil, "\(good)") }
    for bad in ["ln=20,r=32,p=1", "ln=16,r=1,p=1", "ln=19,r=8,p=1", "ln=0,r=8,p=1", "x", "ln=15,p=3,r=8"] {
      #expect(Passwords.Cost(bad) == nil, "\(bad)")
    }
  }

  @Test func `passwords are hashed at the given cost, and checked at the cost of the stored hash`() async throws {
    let passwords = Passwords(cost: .recommended)
    let hash = try await passwords.hash("correct horse")
    #expect(hash.hasPrefix("$scrypt$ln=15,r=8,p=3$"))
    #expect(try await passwords.verify("correct horse", against: hash))
    #expect(try await !passwords.verify("wrong horse", against: hash))
    // A stored hash is checked at its own cost, not at the process's.
    #expect(try await Passwords(cost: Passwords.Cost(logN: 4, r: 8, p: 1)).verify("correct horse", against: hash))
  }

  @Test func `an expired access token gets token-expired, and a refresh helps`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let session = try ana.session
      let old = try await app.dependencies.accessTokens.sign(
        user: ana.userID, session: session, now: Timestamp.now().adding(seconds: -900))
      let response = try await app.send("GET", "users/me", token: old)
      #expect(response.status == 401)
      #expect(response.problem == "token-expired")
      #expect(response.header("WWW-Authenticate")?.contains("token-expired") == true)
      // Another process's clock may be ahead, by up to 10 minutes.
      for (seconds, status) in [(590, 200), (660, 401)] {
        let early = try await app.dependencies.accessTokens.sign(
          user: ana.userID, session: session, now: Timestamp.now().adding(seconds: seconds))
        #expect(try await app.send("GET", "users/me", token: early).status == status)
      }
      #expect(try await ana.refresh().status == 200)
      _ = try await ana.get("users/me")
    }
  }
}
