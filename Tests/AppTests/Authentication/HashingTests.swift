import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

@Suite struct HashingTests {
  /// The stored hash of ana's password.
  private func stored(_ app: TestApp) async throws -> String? {
    try await app.value("SELECT password_hash FROM users WHERE username = 'ana'")
  }

  private func store(_ hash: String?, _ app: TestApp) async throws {
    try await app.database.execute("UPDATE users SET password_hash = \(hash) WHERE username = 'ana'")
  }

  @Test func `passwords that cannot be hashed in time are refused immediately`() async throws {
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
        // The waiting callers give up and make room.
        group.cancelAll()
        return error
      }
      return nil
    }
    #expect(refusal?.slug == "busy")
    #expect(refusal?.retryAfter == 2)
    try passwords.admit()
  }

  @Test func `a flood of logins gets 503, does not count as failures, and delays nothing else`() async throws {
    // Each hash takes some time, so that few are done before all logins have arrived.
    let environment = ["MUSTER_SCRYPT": "ln=15,r=8,p=2", "MUSTER_TRUSTED_PROXIES": "127.0.0.1"]
    try await TestApp.run(environment) { app in
      let ana = try await app.signUp("ana")
      let (logins, finished) = (100, Tally<String>())
      try await app.withConnections(256) {
        try await withThrowingTaskGroup(of: (number: Int, response: APIResponse).self) { group in
          for number in 0..<logins {
            group.addTask {
              // Each login is for another user and from another address, so that no two share a count of failures.
              let response = try await app.logIn("user\(number)", "wrong horse", from: "203.0.113.\(number)")
              finished.count("login")
              return (number, response)
            }
          }
          var refused = 0
          for try await (number, response) in group {
            let key = "login:user\(number)"
            let failures: Int? = try await app.value(
              "SELECT round(failures)::integer FROM throttles WHERE key = sha256(convert_to(\(key), 'UTF8'))")
            guard response.status == 503 else {
              #expect(response.status == 401 && failures == 1, "\(number): \(response.body)")
              continue
            }
            refused += 1
            #expect(response.problem == "busy", "\(response.body)")
            #expect(response.header("Retry-After") == "2")
            #expect(failures == nil || failures == 0, "\(number)")
            guard refused == 1 else { continue }
            for (path, token) in [("/health/ready", nil), ("users/me", ana.accessToken)] as [(String, String?)] {
              let other = try await app.send("GET", path, token: token)
              #expect(other.status == 200, "\(path): \(other.body)")
            }
            let refreshed = try await ana.refresh()
            #expect(refreshed.status == 200)
            // Some logins were still running.
            #expect(finished["login"] < logins)
          }
          #expect((1..<logins).contains(refused))
        }
      }
    }
  }

  @Test func `a cancelled caller stops waiting for a thread, and its work is not done`() async throws {
    // The expected time is so long that only the minimum number of callers may wait, and that a wait is noticed.
    let threads = HashingThreads(expecting: 1000)
    let (latch, done) = (Latch(), Tally<String>())
    defer { latch.open() }
    var blocking: [Task<[UInt8], any Error>] = []
    for number in 1...HashingThreads.maximumThreads {
      blocking.append(
        Task {
          try await threads.run {
            latch.block()
            return [1]
          }
        })
      // One after the other, because only a few may wait for a thread.
      try await eventually { latch.waiting == number }
    }
    var waiting: [Task<[UInt8], any Error>] = []
    for _ in 1...4 {
      waiting.append(
        Task {
          try await threads.run {
            done.count("hash")
            return [2]
          }
        })
    }
    try await eventually { threads.isFull }
    await #expect(throws: AppError.busy) { _ = try await threads.run { [3] } }

    // All threads are still blocked, so only the cancellation can end these waits.
    for task in waiting {
      task.cancel()
      await #expect(throws: CancellationError.self) { _ = try await task.value }
    }
    #expect(!threads.isFull)
    latch.open()
    for task in blocking {
      let result = try await task.value
      #expect(result == [1])
    }
    // This caller comes after the others, so their turns are over once it is served.
    let last = try await threads.run { [4] }
    #expect(last == [4])
    #expect(done["hash"] == 0)
  }

  @Test func `a queue of cheap hashes may be long`() async throws {
    let passwords = Passwords(cost: Passwords.Cost(logN: 4, r: 8, p: 1))
    let hashes = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<200 { group.addTask { try await passwords.hash("correct horse") } }
      return try await group.reduce(into: Set<String>()) { $0.insert($1) }
    }
    // Each hash has its own salt.
    #expect(hashes.count == 200)
  }

  @Test func `a login upgrades a hash of lower cost, and keeps one of higher cost`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      let higher = try await Passwords(cost: Passwords.Cost(logN: 5, r: 8, p: 1)).hash("correct horse ana")
      try await store(higher, app)
      #expect(try await app.logIn("ana", "correct horse ana").status == 200)
      #expect(try await stored(app) == higher)
      let old = try await Passwords(cost: Passwords.Cost(logN: 3, r: 8, p: 1)).hash("correct horse ana")
      try await store(old, app)
      #expect(try await app.logIn("ana", "wrong horse").status == 401)
      #expect(try await stored(app) == old)
      #expect(try await app.logIn("ana", "correct horse ana").status == 200)
      let new = try await stored(app)
      #expect(new?.hasPrefix("$scrypt$ln=4,r=8,p=1$") == true)
      #expect(try await app.logIn("ana", "correct horse ana").status == 200)
      #expect(try await stored(app) == new)
    }
  }

  @Test func `several phones may log in while the password is rehashed`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      try await store(try await Passwords(cost: Passwords.Cost(logN: 3, r: 8, p: 1)).hash("correct horse ana"), app)
      let statuses = try await app.race(4) { _ in try await app.logIn("ana", "correct horse ana") }
      #expect(statuses == [200: 4])
    }
  }

  @Test func `a login starts no session if the password changes meanwhile`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let verified = try #require(try await stored(app))
      try await store("$scrypt$another", app)
      for upgraded in [nil, "$scrypt$upgraded"] {
        let isKept = try await app.service.change { change in
          try await User.keep(passwordHash: verified, upgradedTo: upgraded, of: ana.userID, in: change)
        }
        #expect(!isKept)
      }
      #expect(try await stored(app) == "$scrypt$another")
    }
  }

  @Test func `no one logs in with an empty password, or without a valid stored hash`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      #expect(try await app.logIn("ana", "").status == 401)
      for hash in [nil, "", "$scrypt$ln=4,r=8,p=1$$", "nonsense"] {
        try await store(hash, app)
        for password in ["", "correct horse ana"] { #expect(try await app.logIn("ana", password).status == 401) }
        try await app.database.execute("DELETE FROM throttles")
      }
    }
  }
}
