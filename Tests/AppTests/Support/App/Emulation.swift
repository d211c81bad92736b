import Foundation
import Postgres
import TestSupport

/// An engine that is not PostgreSQL, made of PostgreSQL: the features that `MUSTER_ENGINE=distributed` does without raise
/// errors, transactions are serializable, and one statement of a hundred fails as the loser of a conflict.
enum Emulation {
  /// `MUSTER_TEST_ENGINE=distributed` runs all tests of the service on it.
  static let isOn = ProcessInfo.processInfo.environment["MUSTER_TEST_ENGINE"] == "distributed"

  /// Makes a migrated database emulate such an engine for the sessions of the service that begin later.
  static func begin(in databaseURL: String) async throws {
    // A given server is what it is.
    if ProcessInfo.processInfo.environment["MUSTER_TEST_SERVER"] != nil { return }
    try await ScriptConnection.run(databaseURL, timeout: .seconds(60)) { try $0.script(script) }
  }

  /// The functions come before PostgreSQL's own in the search path. Triggers fail the writes of the service, and some of
  /// its COMMITs. Failing SELECTs of any kind is not possible in this way; serializable transactions fail by themselves.
  private static let script = """
    CREATE SCHEMA IF NOT EXISTS testing;
    \(missing.map { "CREATE FUNCTION public.\($0) LANGUAGE plpgsql AS $$ BEGIN RAISE 'this engine has no \($0)'; END $$;" }
      .joined(separator: "\n"))
    CREATE FUNCTION testing.conflict() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF current_user = '\(TestCluster.programRole)' AND pg_catalog.random() < 0.01 THEN
        RAISE 'injected' USING ERRCODE = '40001';
      END IF;
      RETURN NULL;
    END
    $$;
    GRANT USAGE ON SCHEMA testing TO \(TestCluster.programRole);
    DO $$
    DECLARE
      name text;
    BEGIN
      FOR name IN SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP
        EXECUTE format(
          'CREATE TRIGGER conflicts AFTER INSERT OR UPDATE OR DELETE ON public.%I
          FOR EACH STATEMENT EXECUTE FUNCTION testing.conflict()', name);
      END LOOP;
      CREATE CONSTRAINT TRIGGER conflicts_at_commit AFTER INSERT OR UPDATE ON user_stamps
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION testing.conflict();
      EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database());
      EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = serializable', current_database());
    END
    $$;
    """

  private static let missing = [
    "pg_advisory_xact_lock(integer, integer) RETURNS void", "pg_advisory_xact_lock(bigint) RETURNS void",
    "pg_advisory_xact_lock_shared(integer, integer) RETURNS void", "pg_try_advisory_xact_lock(bigint) RETURNS boolean",
    "pg_notify(text, text) RETURNS void", "pg_current_snapshot() RETURNS pg_snapshot",
  ]
}
