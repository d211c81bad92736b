import Postgres
import Synchronization
import TestSupport

@testable import App

/// A service with its database. Starting both takes longer than most tests do, so tests of one kind take turns. Each
/// finds the tables as the migrations left them.
final class RunningApp: Sendable {
  /// Tests of the same kind configure their services in the same way.
  struct Kind: Hashable {
    let environment: [String: String]
    let queuesWrites: Bool

    /// Nil for settings that few tests use.
    init?(_ environment: [String: String], queuesWrites: Bool) {
      guard environment.isEmpty || environment == ["MUSTER_THROTTLING": "off"] else { return nil }
      (self.environment, self.queuesWrites) = (environment, queuesWrites)
    }
  }

  /// Deleted rows slow a database down until it is vacuumed.
  private static let maximumTests = 50
  /// Each has up to 24 connections, of the 800 that the server accepts.
  private static let maximumIdle = 6
  /// The one that was used last comes last.
  private static let idle = Mutex<[(kind: Kind, running: RunningApp)]>([])

  let app: TestApp
  private let service: Task<Void, any Error>
  private let stop: AsyncStream<Void>.Continuation
  private let tests = Atomic(0)

  /// Creates a database and starts the service.
  ///
  /// - Parameter configure: gets the URL of the database.
  init(
    _ configure: (_ databaseURL: String) async throws -> (dependencies: Dependencies, limits: ServiceLimits)
  ) async throws {
    let databaseURL = try await TestCluster.createDatabase(template: "muster_template")
    do {
      let (dependencies, limits) = try await configure(databaseURL)
      let owner = try Self.owner(of: databaseURL)
      let (ports, port) = AsyncStream.makeStream(of: Int.self)
      let (stops, stop) = AsyncStream.makeStream(of: Void.self)
      service = Task {
        defer { port.finish() }
        do {
          try await serving(
            logger: dependencies.logger,
            service: { makeService(dependencies, host: "127.0.0.1", port: 0, limits: limits, onListening: $0) }
          ) {
            port.yield($0)
            for await _ in stops {}
          }
        } catch {
          await dependencies.close()
          throw error
        }
        await dependencies.close()
      }
      self.stop = stop
      var listening = ports.makeAsyncIterator()
      guard let port = await listening.next() else {
        // Either it ended, or this task is cancelled.
        stop.finish()
        owner.close()
        try await service.value
        try Task.checkCancellation()
        throw Unexpected("the service ended before it listened")
      }
      // The test's certificates are for this name.
      let host = dependencies.certificate == nil ? "http://127.0.0.1" : "https://localhost"
      app = TestApp(
        url: "\(host):\(port)", databaseURL: databaseURL, dependencies: dependencies, database: owner)
    } catch {
      try await TestCluster.dropDatabase(databaseURL)
      throw error
    }
  }

  /// The database as its owner has it, with the patience of a busy test machine.
  private static func owner(of databaseURL: String) throws -> Database {
    var configuration = Database.Configuration(url: databaseURL)
    configuration.applicationName = "test owner"
    configuration.connectTimeout = .seconds(10)
    configuration.acquireTimeout = .seconds(30)
    configuration.lockTimeout = .seconds(20)
    configuration.statementTimeout = .seconds(40)
    configuration.logger = .quiet
    return try Database(configuration)
  }

  /// An idle service of this kind, if there is one.
  static func take(_ kind: Kind) -> RunningApp? {
    idle.withLock { idle in
      idle.lastIndex { $0.kind == kind }.map { idle.remove(at: $0).running }
    }
  }

  /// Keeps the service for another test of its kind. If there are too many, the one that is idle longest ends.
  func keep(for kind: Kind) async throws {
    let oldest = Self.idle.withLock { idle in
      idle.append((kind, self))
      return idle.count > Self.maximumIdle ? idle.removeFirst().running : nil
    }
    try await oldest?.end()
  }

  func end() async throws {
    stop.finish()
    let result = await service.result
    app.database.close()
    try await TestCluster.dropDatabase(app.databaseURL)
    try result.get()
  }

  // MARK: The database

  /// Lets a database that is copied from this one be restored.
  static func prepare(_ url: String) async throws {
    try await ScriptConnection.run(url, timeout: .seconds(60)) { try $0.script(restoring) }
  }

  /// Empties the tables after a test. Returns false if the service cannot be used again: the test has changed the
  /// schema, the tables have statistics now, a write still runs, or enough tests have used the service.
  func restore() async -> Bool {
    guard tests.add(1, ordering: .relaxed).newValue < Self.maximumTests else { return false }
    for _ in 0..<100 {
      guard app.dependencies.writeQueue.isIdle else {
        try? await Task.sleep(for: .milliseconds(10))
        continue
      }
      let outcome: String? = try? await app.database.execute("SELECT testing.restore()").first?[0]
      switch outcome {
      case "restored": return true
      case "busy": try? await Task.sleep(for: .milliseconds(10))
      default: return false
      }
    }
    return false
  }

  /// `testing.state()` changes with any change of the schema, and of the rows that the migrations inserted.
  private static let restoring = """
    CREATE SCHEMA testing;

    CREATE FUNCTION testing.state() RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
      catalog text;
      part text;
      whole text := '';
    BEGIN
      FOREACH catalog IN ARRAY ARRAY[
        'pg_class WHERE oid >= 16384', 'pg_attribute WHERE attrelid >= 16384', 'pg_attrdef', 'pg_constraint',
        'pg_trigger', 'pg_index WHERE indrelid >= 16384', 'pg_proc WHERE oid >= 16384', 'pg_rewrite WHERE oid >= 16384',
        'pg_db_role_setting WHERE setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))']
      LOOP
        EXECUTE 'SELECT count(*) || '' '' || coalesce(sum(xmin::text::bigint), 0) FROM ' || catalog INTO part;
        whole := whole || part || ', ';
      END LOOP;
      FOR catalog IN SELECT name FROM testing.filled_tables ORDER BY name LOOP
        EXECUTE format('SELECT string_agg(t::text, '', '' ORDER BY t::text) FROM public.%I AS t', catalog) INTO part;
        whole := whole || coalesce(part, 'no rows') || ', ';
      END LOOP;
      RETURN whole;
    END
    $$;

    CREATE FUNCTION testing.restore() RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
      table_name text;
    BEGIN
      PERFORM FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle';
      IF FOUND THEN RETURN 'busy'; END IF;
      IF testing.state() IS DISTINCT FROM (SELECT state FROM testing.origin) THEN RETURN 'changed'; END IF;
      -- ANALYZE changes the plans of later tests.
      PERFORM FROM pg_class
      WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND reltuples >= 0
        AND relname NOT IN (SELECT name FROM testing.filled_tables);
      IF FOUND THEN RETURN 'changed'; END IF;
      SET LOCAL session_replication_role = replica;
      FOR table_name IN SELECT name FROM testing.empty_tables LOOP
        EXECUTE format('DELETE FROM public.%I', table_name);
      END LOOP;
      RETURN 'restored';
    END
    $$;

    CREATE TABLE testing.filled_tables (name text);
    CREATE TABLE testing.empty_tables (name text);
    CREATE TABLE testing.origin (state text);

    DO $$
    DECLARE
      found text;
      is_filled boolean;
    BEGIN
      FOR found IN SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM public.%I)', found) INTO is_filled;
        IF is_filled THEN
          INSERT INTO testing.filled_tables VALUES (found);
        ELSE
          INSERT INTO testing.empty_tables VALUES (found);
        END IF;
      END LOOP;
    END
    $$;

    INSERT INTO testing.origin SELECT testing.state();
    """
}
