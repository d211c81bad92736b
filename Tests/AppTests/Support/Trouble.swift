import Postgres

@testable import App

/// What makes races of what is otherwise done in a moment: statements that take their time, commits that come late,
/// transactions that are rolled back, and a clock that is set back and forth. All of it is in the test's database; the
/// service is the one that everybody runs.
enum Trouble {
  /// Lets the service read a clock that can be set: `clock_timestamp()` is looked up before PostgreSQL's own of that
  /// name. Before the service connects, for the search path to count.
  static func prepareClock(_ databaseURL: String) async throws {
    try await ScriptConnection.run(databaseURL) {
      try $0.script(
        """
        CREATE TABLE clock (shift interval NOT NULL);
        INSERT INTO clock VALUES ('0');
        CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
        AS 'SELECT pg_catalog.clock_timestamp() + (SELECT shift FROM public.clock)';
        DO $$ BEGIN
          EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database());
        END $$;
        """)
    }
  }

  static func setClock(secondsAhead seconds: Int, in app: TestApp) async throws {
    try await app.database.execute("UPDATE clock SET shift = make_interval(secs => \(Double(seconds)))")
  }

  /// After any statement that writes, in some transactions: up to 20 ms, in which others overtake it; or its end, as by
  /// a serialization failure, which is tried again, or by a failure that is none of ours, which is not. A change's last
  /// such statement is the one that stamps, so that some COMMITs come late.
  ///
  /// - Parameters:
  ///   - slow: how many statements of a hundred.
  ///   - failing: the same.
  static func begin(slow: Int, failing: Int, in app: TestApp) async throws {
    let tables = ["users", "friendships", "friend_requests", "blocks", "events", "invitations", "user_stamps"]
    let triggers = tables.map {
      """
      CREATE TRIGGER trouble AFTER INSERT OR UPDATE OR DELETE ON \($0)
      FOR EACH STATEMENT EXECUTE FUNCTION make_trouble();
      """
    }
    try await ScriptConnection.run(app.databaseURL) {
      try $0.script(
        """
        CREATE TABLE trouble (slow integer NOT NULL, failing integer NOT NULL);
        INSERT INTO trouble VALUES (\(slow), \(failing));
        CREATE FUNCTION make_trouble() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
          rates trouble;
        BEGIN
          SELECT * INTO rates FROM trouble;
          IF random() * 100 < rates.slow THEN PERFORM pg_sleep(random() * 0.02); END IF;
          IF random() * 100 < rates.failing THEN
            RAISE EXCEPTION 'trouble' USING ERRCODE = CASE WHEN random() < 0.7 THEN '40001' ELSE 'P0001' END;
          END IF;
          RETURN NULL;
        END
        $$;
        \(triggers.joined(separator: "\n"))
        """)
    }
  }

  /// Ends it. What died of it is to be fanned out again, as an operator would have it.
  static func end(in app: TestApp) async throws {
    try await app.database.execute("UPDATE trouble SET slow = 0, failing = 0")
    try await app.database.execute("UPDATE notification_queue SET failures = 0, died_at = NULL WHERE failures > 0")
  }

  /// A way to break the promise.
  enum Mutation: String, CaseIterable, Sendable {
    /// A stamp is the time at which its transaction began.
    case stampsOfTheBeginning
    /// A new name reaches everybody but the lists of friends.
    case forgottenTouch
    /// Phones get the stamp from a later answer than the items.
    case itemsBeforeTheirStamp

    /// What becomes of a user's stamps, but for that of the inbox.
    fileprivate var stamping: String? {
      switch self {
      case .stampsOfTheBeginning:
        App.Collection.allCases.filter { $0 != .notifications }.map(\.column).map {
          "IF NEW.\($0) <> OLD.\($0) THEN NEW.\($0) := now(); END IF;"
        }.joined(separator: "\n")
      case .forgottenTouch:
        """
        IF EXISTS (SELECT 1 FROM users WHERE xmin = pg_current_xact_id()::xid) THEN NEW.friends := OLD.friends; END IF;
        """
      case .itemsBeforeTheirStamp: nil
      }
    }
  }

  static func apply(_ mutation: Mutation, in app: TestApp) async throws {
    guard let stamping = mutation.stamping else { return }
    try await ScriptConnection.run(app.databaseURL) {
      try $0.script(
        """
        CREATE FUNCTION break_promise() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          \(stamping)
          RETURN NEW;
        END
        $$;
        CREATE TRIGGER broken BEFORE UPDATE ON user_stamps
        FOR EACH ROW EXECUTE FUNCTION break_promise();
        """)
    }
  }
}

/// Holds the first change that comes to its end just before COMMIT, with all its locks; those behind it pass, or wait for
/// what it has locked.
final class Pause: Sendable {
  private let database: Database
  private let gate: AsyncStream<Void>.Continuation
  private let holding: Task<Void, any Error>

  /// Begins it.
  init(in app: TestApp) async throws {
    try await ScriptConnection.run(app.databaseURL) {
      try $0.script(
        """
        CREATE OR REPLACE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF pg_try_advisory_xact_lock(1) THEN PERFORM pg_advisory_xact_lock(2); END IF;
          RETURN NULL;
        END
        $$;
        CREATE OR REPLACE TRIGGER pause AFTER UPDATE ON user_stamps
        FOR EACH STATEMENT EXECUTE FUNCTION pause();
        """)
    }
    let database = try Database(Database.Configuration(url: app.databaseURL))
    let begun = AsyncStream.makeStream(of: Void.self)
    let gate = AsyncStream.makeStream(of: Void.self)
    self.database = database
    self.gate = gate.continuation
    holding = Task {
      // Also if it fails: whoever waits then is let go, and ``end()`` throws.
      defer { begun.continuation.finish() }
      try await database.transaction { transaction in
        try await transaction.rows("SELECT pg_advisory_xact_lock(2)")
        begun.continuation.finish()
        for await _ in gate.stream {}
      }
    }
    for await _ in begun.stream {}
  }

  func end() async throws {
    gate.finish()
    try await holding.value
    database.close()
  }
}
