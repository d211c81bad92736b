import Postgres

@testable import App

/// Makes races likely: slow statements, late commits, rolled back transactions, and a clock that is set back and forth.
/// All of it is in the test's database. The service runs unchanged.
enum Trouble {
  /// Gives the service a clock that can be set: a `clock_timestamp()` that comes before PostgreSQL's own in the search
  /// path. Call it before the service connects, because the search path applies to new connections.
  static func prepareClock(_ databaseURL: String) async throws {
    try await ScriptConnection.run(databaseURL, timeout: .seconds(60)) {
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

  /// Disturbs statements that write, at random. A slow statement takes longer, and other transactions overtake it. A
  /// failing one ends its transaction, either with a serialization failure, which is retried, or with an unknown error,
  /// which is not. The last such statement of a change writes the stamps, so that some COMMITs come
  /// late.
  ///
  /// - Parameters:
  ///   - slow: the percentage of slow statements.
  ///   - failing: the percentage of failing statements.
  ///   - longest: the most seconds that a slow statement takes longer.
  static func begin(slow: Int, failing: Int, longest: Double = 0.02, in app: TestApp) async throws {
    let tables = ["users", "friendships", "friend_requests", "blocks", "events", "invitations", "user_stamps"]
    let triggers = tables.map {
      """
      CREATE TRIGGER trouble AFTER INSERT OR UPDATE OR DELETE ON \($0)
      FOR EACH STATEMENT EXECUTE FUNCTION make_trouble();
      """
    }
    try await ScriptConnection.run(app.databaseURL, timeout: .seconds(60)) {
      try $0.script(
        """
        CREATE TABLE trouble (slow integer NOT NULL, failing integer NOT NULL);
        INSERT INTO trouble VALUES (\(slow), \(failing));
        CREATE FUNCTION make_trouble() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
          rates trouble;
        BEGIN
          SELECT * INTO rates FROM trouble;
          IF random() * 100 < rates.slow THEN PERFORM pg_sleep(random() * \(longest)); END IF;
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

  /// Ends the disturbances. Revives the notices that failed because of them, as an operator would do.
  static func end(in app: TestApp) async throws {
    try await app.database.execute("UPDATE trouble SET slow = 0, failing = 0")
    try await app.database.execute("UPDATE notification_queue SET failures = 0, died_at = NULL WHERE failures > 0")
  }

  /// A way to break the promise.
  enum Mutation: String, CaseIterable, Sendable {
    /// Stamps are the start times of their transactions.
    case stampsOfTheBeginning
    /// A new name does not touch the lists of friends.
    case forgottenTouch
    /// Phones take the stamp from a later response than the items.
    case itemsBeforeTheirStamp

    /// The trigger code that changes a user's stamps. It leaves the stamp of the inbox as it is.
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
    try await ScriptConnection.run(app.databaseURL, timeout: .seconds(60)) {
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
