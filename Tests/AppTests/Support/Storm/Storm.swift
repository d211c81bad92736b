import Foundation
import Logging
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import App

/// Real workers deliver notifications to webhooks. They are killed and stopped at any moment, and the database is
/// restarted and crashes. Afterwards, the arrivals are compared with the inboxes.
final class Storm: Sendable {
  /// A user with one or two webhooks.
  struct Reader: Sendable {
    let phone: Phone
    /// The paths of the webhooks, with the secrets of their signatures.
    let secrets: [(device: String, secret: String)]
  }

  private struct Tally: Sendable {
    var isOver = false
    var changes = 0
    var kills = 0
    var stops = 0
    var partings: [String: Date] = [:]
  }

  let cluster: OwnCluster
  let sink: StormySink
  let app: TestApp
  let readers: [Reader]
  let leavers: [Leaver]
  /// A user whom some notices name.
  let stranger: Person
  let seed: UInt64
  private let environment: [String: String]
  private let tally = Mutex(Tally())

  private init(
    _ cluster: OwnCluster, _ sink: StormySink, _ app: TestApp, _ people: People, _ environment: [String: String],
    seed: UInt64
  ) {
    (self.cluster, self.sink, self.app) = (cluster, sink, app)
    (readers, leavers, stranger) = people
    (self.environment, self.seed) = (environment, seed)
  }

  private typealias People = (readers: [Reader], leavers: [Leaver], stranger: Person)

  var kills: Int { tally.withLock { $0.kills } }
  var stops: Int { tally.withLock { $0.stops } }
  var changes: Int { tally.withLock { $0.changes } }
  /// When the leavers parted, by their devices.
  var partings: [String: Date] { tally.withLock { $0.partings } }
  private var isOver: Bool { tally.withLock { $0.isOver } }

  /// Starts a database, a service and a sink, and registers users with webhooks at the sink.
  static func gather(
    _ count: Int, leavers: Int = 0, seed: UInt64, _ body: @escaping @Sendable (Storm) async throws -> Void
  ) async throws {
    let more = ["MUSTER_WEBHOOK_ALLOW_PRIVATE": "on", "MUSTER_THROTTLING": "off"]
    try await TestApp.onOwnCluster(more) { cluster, own in
      let environment = Muster.environment(cluster.url).merging(more) { $1 }
      try await StormySink.run(seed: seed) { sink in
        let (app, people) = try await ServiceProcess.running(of: own, environment) { app -> (TestApp, People) in
          var people: People = ([], [], try await stranger(in: app))
          for number in 1...count { people.readers.append(try await register(number, app, sink)) }
          for number in 0..<leavers { people.leavers.append(try await registerLeaver(number, app, sink)) }
          return (app, people)
        }
        try await app.takeMails()
        for statement in logbook { try await app.database.execute(statement) }
        try await body(Storm(cluster, sink, app, people, environment, seed: seed))
      }
    }
  }

  /// Every third reader has two webhooks.
  private static func register(_ number: Int, _ app: TestApp, _ sink: StormySink) async throws -> Reader {
    let phone = try await app.signUp("reader\(number)")
    var secrets: [(device: String, secret: String)] = []
    for place in 1...(number % 3 == 0 ? 2 : 1) {
      let device = "/\(number)/\(place)"
      let response = try await phone.send(
        "PUT", "devices", #"{"platform": "webhook", "token": "\#(sink.url(of: device))"}"#)
      #expect(response.status == 201, "\(response.body)")
      secrets.append((device, try #require(response.json["secret"].string)))
    }
    return Reader(phone: phone, secrets: secrets)
  }

  /// Tables with one row per expired lease that was taken over, and one row per failed attempt.
  private static let logbook: [SQL] = [
    "CREATE TABLE takeovers (notification_id uuid NOT NULL)",
    "CREATE TABLE failures (notification_id uuid NOT NULL, device_id uuid NOT NULL)",
    """
    CREATE FUNCTION note_takeover() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO takeovers (notification_id) VALUES (OLD.notification_id);
      RETURN NULL;
    END
    $$
    """,
    """
    CREATE FUNCTION note_failure() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO failures (notification_id, device_id) VALUES (NEW.notification_id, NEW.device_id);
      RETURN NULL;
    END
    $$
    """,
    """
    CREATE TRIGGER takeovers AFTER UPDATE ON deliveries
    FOR EACH ROW WHEN (
      OLD.lease IS NOT NULL AND (
        NEW.lease IS NOT NULL AND OLD.lease <> NEW.lease OR NEW.deaths > OLD.deaths
        -- Behind the row that a dead worker was sending may be some that it had sent and not acknowledged yet.
        OR NEW.lease IS NULL AND OLD.leased_until <= now() AND NEW.attempts = OLD.attempts
          AND NEW.due_at = OLD.due_at AND NEW.last_error IS NOT DISTINCT FROM OLD.last_error))
    EXECUTE FUNCTION note_takeover()
    """,
    """
    CREATE TRIGGER failures AFTER UPDATE ON deliveries
    FOR EACH ROW WHEN (NEW.attempts > OLD.attempts) EXECUTE FUNCTION note_failure()
    """,
    // What happened to each delivery, to explain a fault.
    "CREATE TABLE story (at timestamptz NOT NULL, notification_id uuid, device_id uuid, subject_id uuid, state text)",
    "CREATE INDEX story_of_line ON story (device_id, subject_id)",
    """
    CREATE FUNCTION tell_story() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      d deliveries := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
    BEGIN
      INSERT INTO story VALUES (clock_timestamp(), d.notification_id, d.device_id, d.subject_id, concat_ws(' ',
        TG_OP, d.id, 'in', pg_current_xact_id(), 'since', now()::time(3), 'worker', left(d.worker_id::text, 4),
        'lease', left(d.lease::text, 4), 'until', d.leased_until::time(2), 'due', d.due_at::time(2),
        'attempts', d.attempts, 'deaths', d.deaths));
      RETURN NULL;
    END
    $$
    """,
    "CREATE TRIGGER story AFTER INSERT OR UPDATE OR DELETE ON deliveries FOR EACH ROW EXECUTE FUNCTION tell_story()",
  ]

  // MARK: Disturbances

  /// Runs all disturbances at once, until this number of notifications is filed.
  ///
  /// - Parameters:
  ///   - pause: milliseconds between the bursts of each writer.
  ///   - restarts: the number of restarts of the database, graceful and by a crash in turns.
  func rage(notifications: Int, pause: ClosedRange<Int>, restarts: Int) async throws {
    let (writers, perWriter) = (4, notifications / Self.audience / 4)
    sink.weather = .foul
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<writers {
        group.addTask { try await self.write(perWriter, as: writer, pausing: pause) }
      }
      group.addTask { try await self.restartDatabase(restarts, whileChanging: writers * perWriter) }
      group.addTask { try await self.part(whileChanging: writers * perWriter) }
      group.addTask { try await self.stallSink() }
      for slot in 0..<3 { group.addTask { try await self.keepKilling(slot) } }
      // Wait for the writers, the restarts and the partings. Then the other tasks may end.
      for _ in 0..<(writers + 2) { _ = try await group.next() }
      tally.withLock { $0.isOver = true }
      for try await _ in group {}
    }
    sink.weather = .fair
  }

  private static let audience = 5

  /// Makes changes with five recipients each, and a leaver. Each writer has its own events, so that each subject has
  /// one order.
  func write(_ count: Int, as writer: Int, pausing pause: ClosedRange<Int>) async throws {
    var random = SeededRandom(seed: seed &+ UInt64(writer) &* 7919)
    let lines = (0..<10).map { line in
      let number = writer * 10 + line
      let people = (0..<Self.audience).map { readers[(number * Self.audience + $0) % readers.count].phone.userID }
      return (Event.ID.new(), people + (leavers.isEmpty ? [] : [leavers[number % leavers.count].phone.userID]))
    }
    var made = 0
    while made < count {
      let (event, people) = lines[Int.random(in: 0..<lines.count, using: &random)]
      for _ in 0..<min(count - made, Int.random(in: 1...4, using: &random)) {
        made += 1
        try await notify(people, notice("\(writer).\(made)", event, &random))
      }
      if pause.upperBound > 0 { try await Task.sleep(for: .milliseconds(Int.random(in: pause, using: &random))) }
    }
  }

  /// Files a notice, and retries after errors. If a commit succeeded without a response, the notice is filed and
  /// delivered twice.
  private func notify(_ people: [User.ID], _ notice: Notice) async throws {
    try await untilCommitted { $0.notify(people, about: notice) }
    tally.withLock { $0.changes += 1 }
  }

  /// Makes a change, and repeats it while the database is away.
  func untilCommitted(_ body: (Change) async throws -> Void) async throws {
    while true {
      do { return try await app.service.change(body) } catch is PostgresError {
        try await Task.sleep(for: .milliseconds(100))
      }
    }
  }

  func note(_ device: String, hasPartedAt date: Date) {
    tally.withLock { $0.partings[device] = date }
  }

  private static let fields = ["title", "note", "startTime"]

  private func notice(_ title: String, _ event: Event.ID, _ random: inout SeededRandom) -> Notice {
    switch Int.random(in: 0..<3, using: &random) {
    case 0:
      let field = Self.fields[Int.random(in: 0..<Self.fields.count, using: &random)]
      return .eventUpdated(event, title, [.init(field: field, old: "before", new: title)], by: .new())
    case 1: return .eventInvited(event, title, by: stranger)
    default: return .waitlistPromoted(event, title, guest: .new())
    }
  }

  private func restartDatabase(_ restarts: Int, whileChanging total: Int) async throws {
    for number in 1...restarts {
      try await eventually(within: .seconds(600)) { changes >= total * number / (restarts + 1) }
      try await cluster.stop(crashing: number % 2 == 0)
      try await cluster.start()
    }
  }

  private func stallSink() async throws {
    var random = SeededRandom(seed: seed &+ 104_729)
    while !isOver {
      try await Task.sleep(for: .milliseconds(Int.random(in: 3000...7000, using: &random)))
      sink.stall(for: .milliseconds(Int.random(in: 1000...3000, using: &random)))
    }
  }

  func startWorker() async throws -> Program {
    try await Program(Program.path("muster"), ["worker"], environment: environment)
  }

  /// Repeatedly starts a worker, lets it run for a while, and kills it. Now and then it is first stopped for longer
  /// than its leases last.
  private func keepKilling(_ slot: Int) async throws {
    var random = SeededRandom(seed: seed &+ UInt64(slot) &* 15_485_863)
    while !isOver {
      let worker = try await startWorker()
      defer { worker.signal(SIGKILL) }
      do {
        try await worker.waitForOutput("working", within: .seconds(120))
      } catch {
        // A worker cannot start while the database is down.
        worker.signal(SIGKILL)
        _ = try await worker.exitStatus()
        continue
      }
      try await Task.sleep(for: .milliseconds(Int.random(in: 300...3000, using: &random)))
      if Int.random(in: 0..<4, using: &random) == 0 {
        worker.signal(SIGSTOP)
        try await Task.sleep(for: .milliseconds(Int.random(in: 5000...6500, using: &random)))
        worker.signal(SIGCONT)
        tally.withLock { $0.stops += 1 }
        try await Task.sleep(for: .milliseconds(Int.random(in: 100...1000, using: &random)))
      }
      worker.signal(SIGKILL)
      #expect(try await worker.exitStatus() == -SIGKILL)
      tally.withLock { $0.kills += 1 }
    }
  }

  /// Waits until everything is delivered.
  func calm(within limit: Duration) async throws {
    try await eventually(within: limit) {
      let left: Int? = try await app.value(
        "SELECT (SELECT count(*) FROM notification_queue) + (SELECT count(*) FROM deliveries WHERE died_at IS NULL)")
      return left == 0
    }
    #expect(try await app.countDead() == 0)
  }
}

extension ServiceProcess {
  /// Runs a service for registering users, then stops it gracefully.
  static func running<Value: Sendable>(
    of app: TestApp, _ environment: [String: String], _ body: (TestApp) async throws -> Value
  ) async throws -> Value {
    let process = try await ServiceProcess(of: app, environment)
    defer { process.program.signal(SIGKILL) }
    let value = try await body(process.app)
    process.program.signal(SIGTERM)
    #expect(try await process.program.exitStatus() == 0)
    return value
  }
}
