import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Notices on their way from the queue into inboxes and deliveries, and changes that happen meanwhile.
@Suite struct FanOutTests {
  /// Queues a notice that names no user, in a change of its own.
  private func queue(_ title: String, about event: Event.ID, for people: [User.ID], in app: TestApp) async throws {
    try await app.service.change { $0.notify(people, about: .invitationWithdrawn(event, title)) }
  }

  /// The titles in an inbox, oldest first.
  private func titles(of person: User.ID, in app: TestApp) async throws -> [String] {
    let rows = try await app.database.rows(
      """
      SELECT payload->>'title' FROM notifications
      WHERE recipient_id = \(person) AND payload ? 'title'
      ORDER BY filed_at
      """)
    return try rows.map { try $0[0] }
  }

  /// Creates users that have nothing but an account.
  private func people(_ count: Int, in app: TestApp) async throws -> [User.ID] {
    let ids = (0..<count).map { _ in User.ID.new() }
    try await app.database.batch(
      """
      INSERT INTO users (id, username, display_name)
      SELECT id, 'reader' || place, 'Reader' FROM unnest(\(ids)) WITH ORDINALITY AS added (id, place)
      """,
      "INSERT INTO user_stamps (user_id) SELECT id FROM unnest(\(ids)) AS added (id)")
    return ids
  }

  /// While `body` runs, a step that has filed anything waits before its COMMIT, with all its locks.
  private func holdingSteps<Value: Sendable>(
    in app: TestApp, _ body: () async throws -> Value
  ) async throws -> Value {
    try await ScriptConnection.run(app.databaseURL) {
      try $0.script(
        """
        CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          PERFORM set_config('lock_timeout', '0', true), pg_advisory_xact_lock_shared(7);
          RETURN NULL;
        END
        $$;
        CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON notifications DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION wait();
        """)
    }
    let holder = try Database(Database.Configuration(url: app.databaseURL))
    defer { holder.close() }
    return try await holder.transaction { transaction in
      try await transaction.rows("SELECT pg_advisory_xact_lock(7)")
      return try await body()
    }
  }

  // MARK: Locks

  @Test func `a user with locked stamps does not delay others`() async throws {
    try await TestApp.run { app in
      let readers = try await people(3, in: app)
      for reader in readers { try await queue("Picnic", about: .new(), for: [reader], in: app) }
      let holder = try Database(Database.Configuration(url: app.databaseURL))
      defer { holder.close() }
      try await holder.transaction { transaction in
        try await transaction.rows("SELECT 1 FROM user_stamps WHERE user_id = \(readers[1]) FOR UPDATE")
        #expect(try await FanOut.step(in: app.service).notices > 0)
        for (place, expected) in [["Picnic"], [], ["Picnic"]].enumerated() {
          #expect(try await titles(of: readers[place], in: app) == expected)
        }
        #expect(try await FanOut.step(in: app.service).notices == 0)
      }
      // The notice is not at fault.
      #expect(try await app.value("SELECT failures FROM notification_queue") == 0)
      #expect(try await FanOut.step(in: app.service).notices > 0)
      #expect(try await titles(of: readers[1], in: app) == ["Picnic"])
      #expect(try await app.value("SELECT count(*) FROM notification_queue") == 0)
    }
  }

  // MARK: Several workers

  @Test func `rows that one worker holds are neither taken nor passed by another`() async throws {
    try await TestApp.run { app in
      let (readers, picnic) = (try await people(600, in: app), Event.ID.new())
      try await queue("First", about: picnic, for: readers, in: app)
      let first = try await holdingSteps(in: app) {
        let first = Task { try await FanOut.step(in: app.service).notices > 0 }
        try await app.waitForLocks(1)
        try await queue("Second", about: picnic, for: readers, in: app)
        // A part of the first notice is being filed, so nothing else of this event may be.
        #expect(try await FanOut.step(in: app.service).notices == 0)
        return first
      }
      #expect(try await first.value)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<3 { group.addTask { while try await FanOut.step(in: app.service).notices > 0 {} } }
        try await group.waitForAll()
      }
      while try await FanOut.step(in: app.service).notices > 0 {}
      let inboxes = try await app.database.rows(
        """
        SELECT array_agg(payload->>'title' ORDER BY filed_at) AS titles, count(*) AS readers
        FROM notifications GROUP BY recipient_id
        """)
      #expect(inboxes.count == readers.count)
      #expect(try inboxes.allSatisfy { try $0["titles"] == ["First", "Second"] })
    }
  }

  @Test func `many workers at once file everything once, in order for each event`() async throws {
    try await TestApp.run { app in
      let readers = try await people(40, in: app)
      let events = (0..<12).map { _ in Event.ID.new() }
      for number in 1...6 {
        for event in events { try await queue("\(number)", about: event, for: readers, in: app) }
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<6 {
          group.addTask {
            while try await app.value("SELECT EXISTS (SELECT 1 FROM notification_queue)") == true {
              _ = try await FanOut.step(in: app.service)
            }
          }
        }
        try await group.waitForAll()
      }
      let chains = try await app.database.rows(
        """
        SELECT array_agg(payload->>'title' ORDER BY filed_at) AS titles, count(DISTINCT id) AS ids
        FROM notifications GROUP BY recipient_id, subject_id
        """)
      #expect(chains.count == readers.count * events.count)
      #expect(try chains.allSatisfy { try $0["titles"] == ["1", "2", "3", "4", "5", "6"] && $0["ids"] == 6 })
    }
  }

  @Test func `several notices in one step move a recipient's stamp once, and are filed a microsecond apart`()
    async throws
  {
    try await TestApp.run { app in
      let reader = try await people(1, in: app)[0]
      for title in ["One", "Two", "Three"] { try await queue(title, about: .new(), for: [reader], in: app) }
      try await ScriptConnection.run(app.databaseURL) {
        try $0.script(
          """
          CREATE TABLE moved (stamp timestamptz);
          CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN
            INSERT INTO moved VALUES (NEW.notifications);
            RETURN NULL;
          END
          $$;
          CREATE TRIGGER notes AFTER UPDATE ON user_stamps FOR EACH ROW EXECUTE FUNCTION note();
          """)
      }
      #expect(try await FanOut.step(in: app.service).notices == 3)
      let stamps: [Timestamp] = try await app.database.rows("SELECT stamp FROM moved").map { try $0[0] }
      #expect(stamps.count == 1)
      let places: [Timestamp] = try await app.database.rows("SELECT filed_at FROM notifications ORDER BY filed_at")
        .map { try $0[0] }
      let last = try #require(stamps.first).microseconds
      #expect(places.map(\.microseconds) == [last - 2, last - 1, last])
      #expect(try await titles(of: reader, in: app) == ["One", "Two", "Three"])
    }
  }

  @Test func `ids of notices follow the order of their inserts, whatever connection inserts them`() async throws {
    try await TestApp.run { app in
      let cached: Int64? = try await app.value(
        "SELECT seqcache FROM pg_sequence WHERE seqrelid = pg_get_serial_sequence('notification_queue', 'id')::regclass"
      )
      #expect(cached == 1)
    }
  }

  @Test func `the notice of a cancelled event names no user`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
      try await app.takeNotifications()
      try await ana.cancelEvent(event)
      let persons: [User.ID?] = try await app.database.rows("SELECT person_id FROM notification_queue").map {
        try $0[0]
      }
      #expect(persons == [nil])
      let sent = try await app.takeNotifications()
      #expect(sent.count == 1)
    }
  }

  // MARK: Withdrawn notices

  enum End: String, CaseIterable, Sendable {
    case block, cancel, deleteSender, deleteReceiver
  }

  @Test(arguments: End.allCases)
  func `a friend request that ends during its fan-out leaves no delivery behind`(end: End) async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      try await ben.register(token: "bens")
      let request = try await ana.sendFriendRequest(to: ben)
      let (step, ending) = try await holdingSteps(in: app) {
        let step = Task { try await FanOut.step(in: app.service).notices > 0 }
        try await app.waitForLocks(1)
        let ending = Task {
          switch end {
          case .block: try await ben.block(ana)
          case .cancel: try await ana.cancel(request)
          case .deleteSender: try await ana.deleteAccount()
          case .deleteReceiver: try await ben.deleteAccount()
          }
        }
        try await app.waitForLocks(2)
        return (step, ending)
      }
      #expect(try await step.value)
      _ = try await ending.value
      for table in ["notification_queue", "deliveries"] {
        #expect(try await app.value("SELECT count(*) FROM \(unescaped: table)") == 0, "\(table)")
      }
      guard end != .deleteReceiver else { return }
      #expect(try await ben.get("notifications")["items"].array.isEmpty)
    }
  }

  /// A removal that waits for a step must look at the recipients that the step leaves.
  @Test func `a notice's last recipient can be removed while it is fanned out to the others`() async throws {
    try await TestApp.run { app in
      let readers = try await people(500, in: app)
      let (ana, ben) = try await app.friends("ana", "ben")
      let id = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
      let event = try #require(Event.ID(id))
      try await app.takeNotifications()
      try await app.service.change { change in
        change.notify(readers + [ben.userID], about: .eventUpdated(event, "Dinner", [], by: ana.userID))
      }
      let (step, block) = try await holdingSteps(in: app) {
        let step = Task { try await FanOut.step(in: app.service).notices > 0 }
        try await app.waitForLocks(1)
        let block = Task { try await ben.block(ana) }
        try await app.waitForLocks(2)
        return (step, block)
      }
      #expect(try await step.value)
      _ = try await block.value
      #expect(try await app.queuedNotices().isEmpty)
      try await app.fanOut()
      #expect(try await titles(of: ben.userID, in: app).contains("Dinner") == false)
      #expect(try await app.value("SELECT count(*) FROM notifications WHERE payload->>'title' = 'Dinner'") == 500)
    }
  }

  @Test func `deleted recipients and those who cannot see the named user are left out`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let cleo = try await app.signUp("cleo")
      try await app.database.execute(
        "INSERT INTO blocks (blocker_id, blocked_id, created_at) VALUES (\(cleo.userID), \(ana.userID), now())")
      let (people, gone) = ([ben.userID, cleo.userID], User.ID.new())
      let rows = try await app.database.rows(
        "SELECT \(Person.columns("u")) FROM users AS u WHERE u.id = \(ana.userID)")
      let host = try Person(row: try #require(rows.first))
      let before = try await Stamps.read(.notifications, of: cleo.userID, in: app.service)
      try await app.service.change {
        $0.notify(people + [gone, ana.userID], about: .eventInvited(.new(), "Picnic", by: host))
      }
      // The actor is not a recipient.
      #expect(Set(try await app.queuedNotices().map(\.recipient)) == Set((people + [gone]).map(\.description)))
      try await app.takeNotifications()
      let recipients = try await app.database.rows(
        "SELECT recipient_id FROM notifications WHERE type = 'event-invited'")
      #expect(try recipients.map { try $0[0] as User.ID } == [ben.userID])
      #expect(try await Stamps.read(.notifications, of: cleo.userID, in: app.service) == before)
    }
  }

  // MARK: Failures

  @Test func `a notice that fails three times on its own becomes a dead letter and blocks nothing`() async throws {
    try await TestApp.run { app in
      try await app.refuseFiling(of: "Bad")
      let (reader, event) = (try await people(1, in: app)[0], Event.ID.new())
      try await queue("Bad", about: event, for: [reader], in: app)
      try await queue("Next", about: event, for: [reader], in: app)
      try await queue("Other", about: .new(), for: [reader], in: app)
      #expect(try await FanOut.step(in: app.service).notices > 0)
      #expect(try await titles(of: reader, in: app) == ["Other"])
      let failures: SQL = "SELECT max(failures) FROM notification_queue WHERE died_at IS NULL"
      #expect(try await app.value(failures) == 1)
      #expect(try await FanOut.step(in: app.service).notices == 0)
      #expect(try await app.value(failures) == 2)
      // Its death frees the notice behind it.
      #expect(try await FanOut.step(in: app.service).notices > 0)
      let dead = try await app.database.rows(
        "SELECT failures, last_error FROM notification_queue WHERE died_at IS NOT NULL")
      #expect(try dead.map { try $0["failures"] as Int } == [3])
      #expect(try (dead.first?["last_error"] as String?)?.contains("not this one") == true)
      #expect(try await titles(of: reader, in: app) == ["Other", "Next"])
      #expect(try await FanOut.step(in: app.service).notices == 0)
      try await app.database.execute("DELETE FROM notification_queue")
    }
  }

  // MARK: Many recipients

  @Test func `a worker that is killed inside a step loses nothing and files nothing twice`() async throws {
    try await TestApp.run { app in
      let (event, readers) = (Event.ID.new(), try await people(3, in: app))
      for title in ["One", "Two"] { try await queue(title, about: event, for: readers, in: app) }
      let waiting: SQL = """
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'muster worker' AND wait_event = 'advisory'
        """
      try await holdingSteps(in: app) {
        let worker = try await Program(
          Program.path("muster"), ["worker"], environment: Muster.environment(app.databaseURL))
        defer { worker.signal(SIGKILL) }
        try await eventually { try await app.value(waiting) == 1 }
        worker.signal(SIGKILL)
        _ = try await worker.exitStatus()
      }
      try await app.fanOut()
      for reader in readers { #expect(try await titles(of: reader, in: app) == ["One", "Two"]) }
      try await app.takeNotifications()
    }
  }

  @Test func `queue, inboxes and deliveries have no foreign keys, which would deadlock after the stamps`() async throws
  {
    try await TestApp.run { app in
      let tables = try await app.database.rows(
        """
        SELECT conrelid::regclass::text FROM pg_constraint
        WHERE contype = 'f' AND conrelid::regclass::text IN ('notification_queue', 'notifications', 'deliveries')
        """)
      #expect(tables.isEmpty)
      #expect(try await app.value("SELECT count(*) FROM pg_constraint WHERE contype = 'f'") ?? 0 > 10)
    }
  }

  @Test func `a notice for many recipients is fanned out in parts, and does not delay others`() async throws {
    try await TestApp.run { app in
      let readers = try await people(1200, in: app)
      try await queue("Festival", about: .new(), for: readers, in: app)
      for reader in readers.suffix(2) { try await queue("Picnic", about: .new(), for: [reader], in: app) }
      var left: [Int] = []
      while try await FanOut.step(in: app.service).notices > 0 {
        let waiting: Int? = try await app.value(
          "SELECT coalesce(sum(cardinality(recipient_ids)), 0)::integer FROM notification_queue")
        left.append(try #require(waiting))
        if left.count == 1 {
          for reader in readers.suffix(2) { #expect(try await titles(of: reader, in: app).contains("Picnic")) }
        }
      }
      #expect(left == [1100, 600, 100, 0])
      let received = try await app.database.rows(
        "SELECT count(*), count(DISTINCT recipient_id) FROM notifications WHERE payload->>'title' = 'Festival'")
      #expect(try received.map { try [$0[0], $0[1]] as [Int] } == [[1200, 1200]])
    }
  }
}

extension TestApp {
  /// Makes fan-out fail for notices with this title.
  func refuseFiling(of title: String) async throws {
    try await ScriptConnection.run(databaseURL) {
      try $0.script(
        """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          RAISE EXCEPTION 'not this one';
        END
        $$;
        CREATE TRIGGER refuses BEFORE INSERT ON notifications
        FOR EACH ROW WHEN (NEW.payload->>'title' = '\(title)') EXECUTE FUNCTION refuse();
        """)
    }
  }
}
