import Foundation
import Postgres
import Testing

@testable import App

@Suite struct HashingTests {
  private func logIn(_ app: TestApp, password: String = "correct horse ana") async throws -> Int {
    try await app.send("POST", "auth/login", body: #"{"login": "ana", "password": "\#(password)"}"#).status
  }

  /// What is stored of ana's password.
  private func stored(_ app: TestApp) async throws -> String? {
    try await app.value("SELECT password_hash FROM users WHERE username = 'ana'")
  }

  private func store(_ hash: String?, _ app: TestApp) async throws {
    try await app.database.execute("UPDATE users SET password_hash = \(hash) WHERE username = 'ana'")
  }

  @Test func `more passwords than can be hashed in time are turned away at once`() async throws {
    let passwords = Passwords(cost: .recommended)
    let refusal = await withTaskGroup(of: AppError?.self) { group -> AppError? in
      for _ in 0..<400 {
        group.addTask {
          do {
            _ = try await passwords.hash("correct horse")
            return nil
          } catch {
            return error as? AppError
          }
        }
      }
      for await error in group {
        guard let error else { continue }
        // Those who wait give up, and make room.
        group.cancelAll()
        return error
      }
      return nil
    }
    #expect(refusal?.slug == "busy")
    #expect(refusal?.retryAfter == 2)
    try passwords.admit()
  }

  @Test func `a queue of cheap hashes may be long`() async throws {
    let passwords = Passwords(cost: Passwords.Cost(logN: 4, r: 8, p: 1))
    let hashes = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<200 { group.addTask { try await passwords.hash("correct horse") } }
      return try await group.reduce(into: Set<String>()) { $0.insert($1) }
    }
    // Each has a salt of its own.
    #expect(hashes.count == 200)
  }

  @Test func `a password hashed at another cost is hashed anew when its owner logs in`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      let old = try await Passwords(cost: Passwords.Cost(logN: 5, r: 8, p: 1)).hash("correct horse ana")
      try await store(old, app)
      #expect(try await logIn(app, password: "wrong horse") == 401)
      #expect(try await stored(app) == old)
      #expect(try await logIn(app) == 200)
      let new = try await stored(app)
      #expect(new?.hasPrefix("$scrypt$ln=4,r=8,p=1$") == true)
      #expect(try await logIn(app) == 200)
      #expect(try await stored(app) == new)
    }
  }

  @Test func `several phones may log in while the password is hashed anew`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      try await store(try await Passwords(cost: Passwords.Cost(logN: 5, r: 8, p: 1)).hash("correct horse ana"), app)
      try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<4 { group.addTask { try await logIn(app) } }
        for try await status in group { #expect(status == 200) }
      }
    }
  }

  @Test func `a password that is changed meanwhile starts no session`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let verified = try #require(try await stored(app))
      try await store("$scrypt$another", app)
      for upgraded in [nil, "$scrypt$upgraded"] {
        let isKept = try await app.database.change { change in
          try await User.keep(passwordHash: verified, upgradedTo: upgraded, of: ana.userID, in: change)
        }
        #expect(!isKept)
      }
      #expect(try await stored(app) == "$scrypt$another")
    }
  }

  @Test func `nobody logs in where there is no password, nor with none`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      #expect(try await logIn(app, password: "") == 401)
      for hash in [nil, "", "$scrypt$ln=4,r=8,p=1$$", "nonsense"] {
        try await store(hash, app)
        for password in ["", "correct horse ana"] { #expect(try await logIn(app, password: password) == 401) }
        try await app.database.execute("DELETE FROM throttles")
      }
    }
  }
}
