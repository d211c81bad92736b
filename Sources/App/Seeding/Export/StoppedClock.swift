import Postgres

/// A database whose clock stands still and whose random numbers are all 0, so that the same changes always leave the
/// same rows and stamps.
enum StoppedClock {
  /// Prepares an empty database, before anything else connects to it. The functions come before PostgreSQL's own in the
  /// search path, and so also become the defaults of columns that the migrations create.
  static func stop(_ url: String, at time: Timestamp) async throws {
    let clocks = ["now", "clock_timestamp", "statement_timestamp"].map {
      "CREATE FUNCTION public.\($0)() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT '\(time.rfc3339())'::timestamptz $$;"
    }
    let script =
      clocks.joined(separator: "\n") + """
        CREATE FUNCTION public.random() RETURNS double precision LANGUAGE sql STABLE AS $$ SELECT 0.0::double precision $$;
        DO $$ BEGIN
          EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database());
        END $$;
        """
    try await ScriptConnection.run(url) { try $0.script(script) }
  }
}
