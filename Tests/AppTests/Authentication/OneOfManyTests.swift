import Postgres
import Testing

@testable import App

/// Of many requests at the same time, one does a thing that may be done once.
@Suite struct OneOfManyTests {
  struct Race: Sendable, CustomTestStringConvertible {
    fileprivate typealias Send = @Sendable (_ index: Int) async throws -> APIResponse

    let testDescription: String
    let count: Int
    /// The status of the one that succeeds, and that of the others.
    let one: Int
    let others: Int
    /// Whether repeated failures are throttled, as usual.
    var isThrottled = true
    /// The sessions afterwards, and the types of the mails that the request sends.
    var sessions: Int?
    var mails: [String]?
    fileprivate let prepare: @Sendable (TestApp) async throws -> Send
  }

  private static let email = "ana@example.com"

  private static let races = [
    Race(testDescription: "registrations of one name", count: 24, one: 201, others: 409, sessions: 1) { app in
      { index in
        try await app.send(
          "POST", "auth/register",
          body: #"{"username": "ana", "email": "\#(index)@example.com", "password": "correct horse"}"#)
      }
    },
    Race(testDescription: "verifications of an address", count: 16, one: 204, others: 422) { app in
      _ = try await app.signUp("ana", isVerified: false)
      let token = try await app.takeToken("mail-verify-email")
      return { _ in try await app.verify(token) }
    },
    Race(
      testDescription: "resets of a password", count: 16, one: 204, others: 422, mails: ["mail-password-changed"]
    ) { app in
      _ = try await app.signUp("ana")
      _ = try await app.askForReset(email)
      let token = try await app.takeToken("mail-reset-password")
      return { try await app.confirmReset(token, "another horse \($0)") }
    },
    Race(
      testDescription: "logins with one code", count: 16, one: 200, others: 401, isThrottled: false, sessions: 2
    ) { app in
      let ana = try await app.signUp("ana")
      #expect(try await ana.verify(try await app.takeToken("mail-verify-email")).status == 204)
      let (code, token) = try await app.takeCode(of: email)
      return { try await $0 % 2 == 0 ? app.confirmCode(code, of: email) : app.confirmCode(byToken: token) }
    },
    Race(
      testDescription: "changes with one code", count: 8, one: 204, others: 403, isThrottled: false,
      mails: ["mail-password-changed"]
    ) { app in
      // An account without a password.
      _ = try await app.send("POST", "auth/register", body: #"{"username": "ana", "email": "\#(email)"}"#)
      try await app.takeMails()
      let ana = try Phone(app, "ana", try await app.confirmCode(try await app.takeCode(of: email).code, of: email))
      let code = try await app.takeCode(of: email).code
      return {
        try await ana.send("POST", "auth/password", #"{"code": "\#(code)", "newPassword": "another horse \#($0)"}"#)
      }
    },
  ]

  /// - Parameter queuesWrites: whether the requests wait for their turn before they take a connection.
  @Test(arguments: races, [true, false])
  func `of many concurrent requests, one succeeds`(_ race: Race, queuesWrites: Bool) async throws {
    let environment = race.isThrottled ? [:] : ["MUSTER_THROTTLING": "off"]
    try await TestApp.run(environment, queuesWrites: queuesWrites) { app in
      let statuses = try await app.race(race.count, try await race.prepare(app))
      #expect(statuses == [race.one: 1, race.others: race.count - 1])
      if let sessions = race.sessions { #expect(try await app.value("SELECT count(*) FROM sessions") == sessions) }
      if let mails = race.mails { #expect(try await app.takeMails().map(\.type) == mails) }
    }
  }
}
