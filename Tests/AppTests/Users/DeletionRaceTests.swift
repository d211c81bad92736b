import Postgres
import Synchronization
import TestSupport
import Testing

@testable import App

/// Ana deletes her account while another request does something with it, many times. Whichever comes first, nothing is
/// left half done.
@Suite struct DeletionRaceTests {
  static let meetings: [Meeting] = [
    Meeting("being invited", [201, 422]) { try await $0.plan(by: $0.ben, inviting: [$0.cleo, $0.ana]) },
    Meeting("inviting", [201, 401]) { try await $0.plan(by: $0.ana, inviting: [$0.ben]) },
    Meeting("getting a friend request, and accepting it", [200, 401, 404]) { party in
      let dev = try await party.app.signUp("dev\(party.ana.username.dropFirst(3))")
      let asked = try await dev.send("POST", "friend-requests", json([("receiverId", party.ana.id)]))
      guard let request = asked.json["id"].string else { return asked.status }
      return try await party.ana.send("POST", "friend-requests/\(request)/accept").status
    },
    Meeting("answers to their event", [200, 409]) { try await $0.answer("going", by: $0.ben, to: $0.anas) },
    Meeting("their own answer", [200, 401, 404]) { try await $0.answer("maybe", by: $0.ana, to: $0.bens) },
    Meeting("an edit of their own event", [200, 401, 404]) {
      try await $0.ana.send("PATCH", "events/\($0.anas)", #"{"title": "Other"}"#).status
    },
    Meeting("a friend's new name", [200]) { try await $0.rename($0.ben) },
    Meeting("their own new name", [200, 401]) { try await $0.rename($0.ana) },
    Meeting("logging in", [200, 401]) { try await $0.app.logIn($0.ana.username, $0.ana.password).status },
    Meeting("refreshing", [200, 401]) { try await $0.ana.refresh().status },
  ]

  @Test(arguments: meetings) func `the end of an account meets another change`(meeting: Meeting) async throws {
    try await Party.race { party in
      let cleos = try await party.cleo.refreshLists()
      async let deleted: APIResponse = party.ana.deleteAccount()
      let status = try await meeting.act(party)
      _ = try await deleted
      #expect(meeting.expected.contains(status), "\(status)")
      #expect(try await party.cleo.stale(cleos).isSuperset(of: [.friends, .events, .invitations]))
      let people = try await party.ben.get("friends")["items"].array.map { $0["user"]["username"].string }
      #expect(people == [party.cleo.username])
      #expect(try await party.cleo.get("events/\(party.bens)")["myStatus"].string == "going")
      #expect(try await party.cleo.get("events/\(party.anas)")["status"].string == "cancelled")
      #expect(try await party.app.value("SELECT count(*) FROM users WHERE id = \(party.ana.userID)") == 0)
    }
  }

  @Test func `accepting their request`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"], queuesWrites: false) { app in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<16 {
          group.addTask {
            let (ana, ben) = (try await app.signUp("ana\(number)"), try await app.signUp("ben\(number)"))
            let request = try await ana.sendFriendRequest(to: ben)
            async let deleted: APIResponse = ana.deleteAccount()
            let accepted = try await ben.send("POST", "friend-requests/\(request)/accept").status
            _ = try await deleted
            #expect([200, 404].contains(accepted))
            for path in ["friends", "friend-requests"] { #expect(try await ben.get(path)["items"].array.isEmpty) }
          }
        }
        try await group.waitForAll()
      }
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  // MARK: As far as each gets before the other ends

  /// The number of deletions that began, including those that began again after PostgreSQL chose them as the victim of
  /// a deadlock.
  private final class Attempts: Sendable {
    private let begun = Mutex(0)

    var count: Int { begun.withLock { $0 } }

    func begin() {
      begun.withLock { $0 += 1 }
    }
  }

  private func delete(_ phone: Phone, _ attempts: Attempts) -> Task<Void, any Error> {
    Task {
      let session = try phone.session
      try await phone.app.service.change { change in
        attempts.begin()
        try await User.erase(phone.userID, by: session, in: change)
      }
    }
  }

  /// While `body` runs, every change waits for the stamps at its end, if for nothing before.
  private func holdingStamps<Value: Sendable>(
    in app: TestApp, _ body: () async throws -> Value
  ) async throws -> Value {
    let holder = try Database(Database.Configuration(url: app.databaseURL))
    defer { holder.close() }
    return try await holder.transaction { transaction in
      try await transaction.rows("SELECT 1 FROM user_stamps FOR UPDATE")
      return try await body()
    }
  }

  @Test func `two users with declined requests in both directions do not deadlock`() async throws {
    try await TestApp.run { app in
      let attempts = Attempts()
      var phones: [Phone] = []
      for number in 0..<6 {
        let (ana, ben) = (try await app.signUp("ana\(number)"), try await app.signUp("ben\(number)"))
        try await ben.decline(try await ana.sendFriendRequest(to: ben))
        try await ana.decline(try await ben.sendFriendRequest(to: ana))
        phones += [ana, ben]
      }
      let deletions = try await holdingStamps(in: app) {
        let deletions = phones.map { delete($0, attempts) }
        try await app.waitForLocks(phones.count)
        return deletions
      }
      for deletion in deletions { try await deletion.value }
      #expect(attempts.count == phones.count)
      #expect(try await app.value("SELECT count(*) FROM users") == 0)
      try await app.takeNotifications()
    }
  }

  @Test func `a token of theirs that is being purged`() async throws {
    try await TestApp.run { app in
      let attempts = Attempts()
      func expire() async throws -> Phone {
        let phone = try await app.signUp("user\(attempts.count)")
        try await app.database.execute("UPDATE mail_tokens SET expires_at = now() - interval '1 second'")
        return phone
      }
      func forget() async throws -> Int {
        try await app.service.change { try await MailToken.purge(atMost: 10, in: $0) }
      }
      let ana = try await expire()
      let first = try await holdingStamps(in: app) {
        let deletion = delete(ana, attempts)
        try await app.waitForLocks(1)
        // The token belongs to a user who is being deleted, and is left to that deletion.
        #expect(try await forget() == 0)
        return deletion
      }
      try await first.value
      let ben = try await expire()
      let (forgetting, second) = try await holdingStamps(in: app) {
        let forgetting = Task { try await app.service.change { try await MailToken.purge(atMost: 10, in: $0) } }
        try await app.waitForLocks(1)
        let deletion = delete(ben, attempts)
        try await app.waitForLocks(2)
        return (forgetting, deletion)
      }
      #expect(try await forgetting.value == 1)
      try await second.value
      #expect(attempts.count == 2)
      #expect(try await app.value("SELECT count(*) FROM users") == 0)
    }
  }

  @Test func `a friend's new name, when only the COMMIT is left`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      try await ScriptConnection.run(app.databaseURL) {
        try $0.script(
          """
          CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN
            PERFORM pg_advisory_xact_lock(7);
            RETURN NULL;
          END
          $$;
          CREATE TRIGGER waits AFTER DELETE ON users FOR EACH STATEMENT EXECUTE FUNCTION wait();
          """)
      }
      let hers = try await ana.refreshLists()
      let holder = try Database(Database.Configuration(url: app.databaseURL))
      defer { holder.close() }
      let (deletion, renaming) = try await holder.transaction { transaction in
        try await transaction.rows("SELECT pg_advisory_xact_lock(7)")
        let deletion = delete(ben, Attempts())
        try await app.waitForLocks(1)
        // His stamps are among those that her new name moves, but are gone by the time it reaches them.
        let renaming = Task { try await ana.editProfile(#"{"displayName": "Anita"}"#) }
        try await app.waitForLocks(2)
        return (deletion, renaming)
      }
      try await deletion.value
      _ = try await renaming.value
      #expect(try await ana.get("users/me")["displayName"].string == "Anita")
      #expect(try await ana.stale(hers).isSuperset(of: [.profile, .friends]))
      #expect(try await app.value("SELECT count(*) FROM user_stamps") == 1)
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `a password reset request`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let (deletion, asking) = try await holdingStamps(in: app) {
        let deletion = delete(ana, Attempts())
        try await app.waitForLocks(1)
        let asking = Task {
          try await app.send("POST", "auth/password-reset", body: #"{"email": "ana@example.com"}"#).status
        }
        try await app.waitForLocks(2)
        return (deletion, asking)
      }
      try await deletion.value
      #expect(try await asking.value == 202)
      #expect(try await app.value("SELECT count(*) FROM mail_tokens") == 0)
      #expect(try await app.value("SELECT count(*) FROM mails") == 0)
    }
  }

  @Test func `a request for a code, and a wrong code`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let code = try await app.takeCode(of: "ana@example.com").code
      let (deletion, asking, guessing) = try await holdingStamps(in: app) {
        let deletion = delete(ana, Attempts())
        try await app.waitForLocks(1)
        let asking = Task { try await app.askForCode("ana@example.com").status }
        let guessing = Task { try await app.confirmCode(code.wrongCode(1), of: "ana@example.com").status }
        // One of them waits for the deletion, and the other one for its turn.
        try await app.waitForLocks(2)
        try await eventually { app.dependencies.writeQueue.waiting(at: .actor(ana.userID)) == 1 }
        return (deletion, asking, guessing)
      }
      try await deletion.value
      #expect(try await asking.value == 202)
      #expect(try await guessing.value == 401)
      for table in ["mail_tokens", "code_uses", "mails"] {
        #expect(try await app.value("SELECT count(*) FROM \(unescaped: table)") == 0, "\(table)")
      }
    }
  }

  // MARK: Many at once

  @Test func `of two deletions, one succeeds`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"], queuesWrites: false) { app in
      for round in 0..<8 {
        let ana = try await app.signUp("ana\(round)")
        async let one = ana.send("DELETE", "users/me", #"{"password": "\#(ana.password)"}"#).status
        async let other = ana.send("DELETE", "users/me", #"{"password": "\#(ana.password)"}"#).status
        let statuses = try await [one, other]
        #expect(statuses.sorted() == [204, 401])
      }
    }
  }

  @Test func `all friends also delete their accounts`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"], queuesWrites: false) { app in
      let phones = try await app.friendsWhoInviteEachOther(8)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for phone in phones.dropLast() { group.addTask { _ = try await phone.deleteAccount() } }
        try await group.waitForAll()
      }
      #expect(try await app.value("SELECT count(*) FROM users") == 1)
      #expect(try await app.value("SELECT count(*) FROM friendships") == 0)
      #expect(try await phones[7].get("friends")["items"].array.isEmpty)
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }
}
