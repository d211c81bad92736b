import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

@Suite struct ExportTests {
  /// Tables whose rows belong to no user's export, and why.
  private static let tablesLeftOut = [
    "known_networks": "has MACs of networks, which say nothing without the service's key",
    "apple_revocations": "names no user",
    "workers": "is about workers",
    "schema_migrations": "is about the schema",
    "throttles": "counts attempts by digest, kept for a day; a list of names can reverse them",
    "idempotency_keys": "holds responses that the user has got, encrypted, kept for a day",
    "retired_usernames": "holds digests of given-up names, kept for 30 days; a list of names can reverse them",
    "session_epoch": "is one row for everyone", "turns": "is the same for everyone",
    "visitor_news": "is about events",
    "mail_attempts": "counts mails by MACs of their addresses, kept for a day",
    "mail_optouts": "has MACs of addresses, and no account",
    "spent_ids": "has ids of friend requests and events that are gone with another account",
    "spent_forms": "has ids of visitors who are gone, kept for a day",
  ]

  @Test func `the export is one document with everything about the caller`() async throws {
    try await TestApp.run { app in
      let people = try await Neighbours.gather(in: app)
      let ana = people.ana
      try await ana.editProfile(#"{"bio": "Climbs \"a lot\" \u00e9\ud83c\udf53"}"#)
      try await ana.answer("going", to: people.bensEvent)
      try await people.ben.createEvent("Waiting", inviting: [ana])
      let response = try await ana.send("GET", "users/me/export")
      #expect(response.status == 200)
      #expect(response.header("Content-Type") == "application/json; charset=utf-8")
      #expect(response.header("Content-Disposition") == #"attachment; filename="muster-export.json""#)
      #expect(response.header("Cache-Control") == "no-store")
      let export = response.json
      #expect(export.keys == Set(["exportedAt", "profile"] + Export.Section.all.map(\.name)))

      #expect(export["profile"]["id"].string == ana.id)
      #expect(export["profile"]["email"].string == "ana@example.com")
      #expect(export["profile"]["emailVerifiedAt"].string?.hasSuffix("Z") == true)
      #expect(export["profile"]["bio"].string == "Climbs \"a lot\" \u{e9}\u{1f353}")
      #expect(export["profile"]["hasPassword"].bool == true)
      #expect(export["sessions"].array.count == 1)
      #expect(export["friends"].array.map { $0["friend"]["username"].string } == ["ben"])
      let requests = export["friendRequests"].array.map {
        "\($0["sender"]["username"].string ?? "") \($0["status"].string ?? "")"
      }
      #expect(Set(requests) == ["ana pending", "dev pending", "finn declined", "ana accepted"])
      #expect(Set(export["events"].array.compactMap { $0["title"].string }) == ["Picnic", "Old"])
      #expect(export["events"].array.allSatisfy { $0["startTime"].string?.hasSuffix(":00Z") == true })
      let invitations = export["invitations"].array.map { "\($0["title"].string ?? "") \($0["status"].string ?? "")" }
      #expect(Set(invitations) == ["Dinner going", "Waiting invited"])
      let waiting = export["queuedNotices"].array.filter { $0["type"].string == "event-invited" }
      #expect(waiting.map { $0["payload"]["title"].string } == ["Waiting"])
      #expect(waiting.map { $0["payload"]["actor"].string } == ["Ben"])
      #expect(export["mailTokens"].array.map { $0["email"].string } == ["ana@example.com"])
      #expect(export["collectionStamps"].array.map(\.keys) == [Set(App.Collection.allCases.map(\.rawValue))])
      #expect(export["identities"].array.isEmpty)
      try await app.takeNotifications()
    }
  }

  @Test func `the export contains no secrets, and only the names of other users`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      try await ben.editProfile(#"{"bio": "Ben's own business"}"#)
      try await ben.createEvent("Ben's own party")
      let hash = try #require(
        try await app.value("SELECT password_hash FROM users WHERE id = \(ana.userID)", as: String.self))
      let export = try await ana.send("GET", "users/me/export").body
      #expect(export.contains("ben"))
      for secret in [hash, "own business", "own party", "ben@example.com", ana.refreshToken, ana.accessToken] {
        #expect(!export.contains(secret), "\(secret)")
      }
      let identities = #"{"provider": "apple", "subject": "001.abc"}"#
      try await app.database.execute(
        """
        INSERT INTO identities (provider, subject, user_id, sealed_grant)
        SELECT document->>'provider', document->>'subject', \(ana.userID), 'sealed'
        FROM (SELECT \(JSONDocument(identities)) AS document) AS given
        """)
      let linked = try await ana.get("users/me/export")["identities"]
      #expect(linked.array.count == 1)
      #expect(linked[0]["subject"].string == "001.abc")
      #expect(linked[0].keys == ["provider", "subject", "createdAt", "stoppedEmail", "relayChangedAt"])
    }
  }

  @Test func `every table and every column is in the export, or left out for a reason`() async throws {
    try await TestApp.run { app in
      let rows = try await app.database.rows(
        """
        SELECT c.relname, c.relkind IN ('r', 'p') AS is_table, a.attname
        FROM pg_class AS c
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
        """)
      var columns: [String: Set<String>] = [:]
      var tables: Set<String> = []
      for row in rows {
        let (relation, column): (String, String) = (try row["relname"], try row["attname"])
        columns[relation, default: []].insert(column)
        if try row["is_table"] { tables.insert(relation) }
      }
      let sections = Export.Section.all + [.profile]
      #expect(tables == Set(sections.map(\.table) + Self.tablesLeftOut.keys))
      for section in sections {
        let known =
          section.owners + section.ownerLists + section.values + section.times + section.people + section.binaries
          + section.withheld
        #expect(columns[section.view ?? section.table] == Set(known), "\(section.name)")
      }
    }
  }

  @Test func `long sections are read in pages, without gaps or duplicates`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      for (phone, count) in [(ana, 500), (ben, 1203)] { try await plant(count, hostedBy: phone, in: app) }
      try await app.database.execute(
        """
        INSERT INTO invitations (event_id, user_id)
        SELECT id, \(ana.userID) FROM events WHERE creator_id = \(ben.userID)
        """)
      let export = try await ana.get("users/me/export")
      #expect(Set(export["events"].array.compactMap { $0["id"].string }).count == 500)
      #expect(export["events"].array.count == 500)
      #expect(Set(export["invitations"].array.compactMap { $0["eventId"].string }).count == 1203)
      #expect(export["invitations"].array.count == 1203)
    }
  }

  @Test func `clients that do not read delay no one`() async throws {
    try await TestApp.run { app in
      var phones: [Phone] = []
      var connections: [RawConnection] = []
      // More clients than connections to the database.
      for number in 0..<20 {
        let phone = try await app.signUp("user\(number)")
        connections.append(try await beginExport(of: phone, in: app))
        phones.append(phone)
      }
      for phone in phones { try await phone.editProfile(#"{"bio": "Still here"}"#) }
      #expect(try await app.send("GET", "/health/ready").status == 200)
      connections.removeAll()
    }
  }

  @Test func `a user has one export at a time, and the next one after it has ended in any way`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      var connection: RawConnection? = try await beginExport(of: ana, in: app)
      let second = try await ana.send("GET", "users/me/export")
      #expect(second.status == 409)
      #expect(second.problem == "export-running")
      for _ in 0..<3 {
        let whole = try await ben.send("GET", "users/me/export")
        #expect(whole.status == 200)
      }
      // An export that sends no body also ends.
      #expect(try await ben.send("HEAD", "users/me/export").status == 200)
      try await eventually { try await ben.send("GET", "users/me/export").status == 200 }
      #expect(connection != nil)
      connection = nil
      try await eventually { try await ana.send("GET", "users/me/export").status == 200 }
    }
  }

  @Test func `an export during which the account is deleted stays incomplete`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let connection = try await beginExport(of: ana, in: app)
      try await ana.deleteAccount()
      let text = try await connection.rest(within: 30)
      #expect(text.contains(#""profile":"#))
      // The end of a chunked body.
      #expect(!text.hasSuffix("0\r\n\r\n"))
    }
  }

  /// Requests an export that is larger than all buffers between client and server, reads nothing of it, and returns
  /// once it is on its way.
  private func beginExport(of phone: Phone, in app: TestApp) async throws -> RawConnection {
    try await plant(4000, hostedBy: phone, in: app)
    let connection = try await RawConnection(to: app, receiveBuffer: 4096)
    try await connection.send(
      "GET /api/v1/users/me/export HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer \(phone.accessToken)\r\n\r\n")
    try await connection.waitForSome()
    return connection
  }

  private func plant(_ count: Int, hostedBy host: Phone, in app: TestApp) async throws {
    try await app.database.execute(
      """
      INSERT INTO events (id, creator_id, title, note, start_time, time_zone, live_until, start_offset, zone_rules)
      SELECT uuid_v7(), \(host.userID), 'Event', repeat('long ', 400), now(), 'UTC', now() + interval '30 hours', 0,
        '2025b'
      FROM generate_series(1, \(count))
      """)
  }
}
