import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// The two roles: the owner of the tables, which migrates, and the role of the service and the worker. That its rights
/// suffice, all tests of the service show: they run with it.
@Suite struct RoleTests {
  private func muster(
    _ arguments: String..., environment: [String: String]
  ) async throws -> (status: Int32, output: String, errors: [Substring]) {
    let program = try await Program(Program.path("muster"), arguments, environment: environment, in: "/tmp")
    let status = try await program.exitStatus()
    return (status, program.standardOutput, program.standardError.split(separator: "\n"))
  }

  /// Runs a statement on a connection of its own.
  private func attempt(_ statement: String, at url: String) async throws {
    try await ScriptConnection.run(url, timeout: .seconds(60)) { try $0.script(statement) }
  }

  @Test func `the service's role reads and writes rows, and can neither create, change, drop nor empty anything`()
    async throws
  {
    try await TestApp.withDatabase { databaseURL in
      // A copy of a database has the rights on tables, but not those on the database.
      try await Resources.migrator(url: databaseURL, role: TestCluster.programRole).up()
      let limited = TestCluster.limited(databaseURL)
      #expect(limited != databaseURL)
      let (rights, others) = try await ScriptConnection.run(limited) { connection -> ([String], [String]) in
        let rights = try connection.rows(
          """
          SELECT DISTINCT string_agg(r.name, ' ' ORDER BY r.place)
          FROM pg_class AS c
          CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER'])
            WITH ORDINALITY AS r (name, place)
          WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND c.relname <> 'schema_migrations'
            AND has_table_privilege(c.oid, r.name)
          GROUP BY c.oid
          """
        ).map { try $0[0] as String }
        let others = try connection.rows(
          """
          SELECT 'schema_migrations: ' || name FROM unnest(ARRAY['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']) AS name
          WHERE has_table_privilege('schema_migrations', name)
          UNION ALL
          SELECT 'no use of ' || oid::regclass FROM pg_class
          WHERE relnamespace = 'public'::regnamespace AND CASE WHEN relkind = 'S' THEN NOT has_sequence_privilege(oid, 'USAGE') END
          UNION ALL
          SELECT 'no use of ' || oid::regprocedure FROM pg_proc
          WHERE pronamespace = 'public'::regnamespace AND NOT has_function_privilege(oid, 'EXECUTE')
          UNION ALL
          SELECT 'owner of ' || oid::regclass FROM pg_class WHERE relowner = current_user::regrole
          UNION ALL
          SELECT 'member of ' || roleid::regrole FROM pg_auth_members WHERE member = current_user::regrole
          UNION ALL
          SELECT 'more than a role that logs in' FROM pg_roles
          WHERE rolname = current_user AND (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)
          """
        ).map { try $0[0] as String }
        return (rights, others)
      }
      #expect(rights == ["SELECT INSERT UPDATE DELETE"])
      #expect(others == [])
      for statement in [
        "CREATE TABLE mine (n int)", "CREATE TEMPORARY TABLE mine (n int)", "CREATE VIEW mine AS SELECT 1",
        "CREATE SCHEMA mine", "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE ROLE mine",
        "CREATE INDEX mine ON users (bio)", "CREATE EXTENSION hstore", "ALTER TABLE users ADD COLUMN mine int",
        "ALTER TABLE sessions DISABLE TRIGGER session_ends", "ALTER TABLE users DROP CONSTRAINT users_pkey",
        "ALTER TABLE users OWNER TO current_user", "ALTER ROLE current_user SUPERUSER", "DROP TABLE notifications",
        "DROP TABLE notifications_default", "ALTER TABLE notifications DETACH PARTITION notifications_default",
        "CREATE TABLE mine PARTITION OF notifications FOR VALUES FROM ('1999-01-01') TO ('1999-01-02')",
        "SELECT make_notification_partition(now() - interval '10 years')", "DROP VIEW friends", "DROP FUNCTION uuid_v7",
        "DROP TRIGGER session_ends ON sessions", "TRUNCATE users CASCADE",
        "TRUNCATE notifications", "SET session_replication_role = replica", "SET ROLE muster",
        "COPY users TO PROGRAM 'cat'", "COPY users FROM '/etc/passwd'", "SELECT pg_read_file('/etc/passwd')",
        "CREATE TRIGGER mine BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION note_session_end()",
        "DELETE FROM schema_migrations",
        "INSERT INTO schema_migrations (version, name, checksum, breaking) VALUES ('9', '9', '', true)",
      ] {
        let refused = await #expect(throws: PostgresError.self, "\(statement)") {
          try await attempt(statement, at: limited)
        }
        #expect(refused?.sqlState == "42501", "\(statement): \(refused?.description ?? "done")")
      }
    }
  }

  @Test func `the service's role makes and drops partitions of notifications by functions, and others may not`()
    async throws
  {
    try await TestApp.withDatabase { databaseURL in
      let limited = TestCluster.limited(databaseURL)
      let newest = "(SELECT max(name) FROM notification_partitions)"
      try await attempt("DO $$ BEGIN EXECUTE format('DROP TABLE %I', \(newest)); END $$", at: databaseURL)
      try await attempt("SELECT make_notification_partition(now() - interval '1 year')", at: databaseURL)
      let count: SQL = "SELECT count(*) FROM notification_partitions"
      for (function, left) in [("make_notification_partitions", 6), ("drop_notification_partition", 5)] {
        try await attempt("SELECT \(function)()", at: limited)
        #expect(try await ScriptConnection.run(limited) { try $0.rows(count)[0][0] as Int } == left)
        // Its settings are its own, whatever the caller's are: names in another schema do not lead it astray.
        let settings: SQL = "SELECT array_to_string(proconfig, ' ') FROM pg_proc WHERE proname = \(function)"
        let fixed: String = try await ScriptConnection.run(limited) { try $0.rows(settings)[0][0] }
        #expect(fixed.contains("search_path=pg_catalog, public, pg_temp"), "\(fixed)")
        let others: SQL = """
          SELECT count(*) FROM pg_proc CROSS JOIN LATERAL aclexplode(proacl) AS acl
          WHERE proname = \(function) AND acl.grantee = 0
          """
        #expect(try await ScriptConnection.run(limited) { try $0.rows(others)[0][0] as Int } == 0)
      }
      // What the functions make can be used, as all tables.
      try await attempt("DO $$ BEGIN EXECUTE format('SELECT FROM %I', \(newest)); END $$", at: limited)
    }
  }

  @Test func `with nothing to do, a migration succeeds as the service's role, and otherwise names the owner`()
    async throws
  {
    try await TestApp.withDatabase { databaseURL in
      let (limited, owner) = (Muster.environment(databaseURL), Muster.ownersEnvironment(databaseURL))
      let role = limited.merging(["MUSTER_DATABASE_ROLE": TestCluster.programRole]) { $1 }
      for environment in [limited, role, owner] {
        let up = try await muster("migrate", environment: environment)
        #expect(up.status == 0 && up.output == "up to date\n" && up.errors.isEmpty, "\(up)")
        #expect(try await muster("migrate", "verify", environment: environment).output == "verified\n")
        #expect(try await muster("migrate", "status", environment: environment).status == 0)
      }
      let down = try await muster("migrate", "down", "--to", "0000", "--yes", environment: limited)
      #expect(down.status != 0 && down.errors.count == 1, "\(down)")
      try await attempt("DELETE FROM schema_migrations WHERE version = '0012'", at: databaseURL)
      let up = try await muster("migrate", environment: limited)
      #expect(up.status != 0 && up.errors.count == 1, "\(up)")
      #expect(up.errors.first?.contains("\(TestCluster.programRole) may not change the schema") == true, "\(up)")
      #expect(up.errors.first?.contains("as muster, the owner") == true, "\(up)")
    }
  }

  @Test func `a migration grants what later tables need, and takes nothing that another role was granted`() async throws
  {
    let role = "role_\(UUID().uuidString.prefix(8).lowercased())"
    let administration = try await TestCluster.administrationURL()
    try await attempt("CREATE ROLE \(role) LOGIN", at: administration)
    try await TestCluster.withDatabase { databaseURL in
      // The owner of a database need not be a superuser, and may have withdrawn everyone's rights on its functions.
      let migrator = Resources.migrator(url: databaseURL, role: role)
      try await attempt("ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC", at: databaseURL)
      try await migrator.up()
      try await attempt(
        """
        CREATE TABLE later (id bigserial, n int); CREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql AS 'SELECT 2 * n'
        """, at: databaseURL)
      let url = databaseURL.replacing("://muster@", with: "://\(role)@")
      try await attempt("INSERT INTO later (n) VALUES (twice(1)); UPDATE later SET n = 3; DELETE FROM later", at: url)
      try await attempt("SELECT uuid_v7(), similarity('a', 'b'), folded('A')", at: url)
      await #expect(throws: PostgresError.self) { try await attempt("TRUNCATE later", at: url) }
      // Existing tables are granted by the next run, even if there is nothing to migrate.
      try await attempt(
        "REVOKE ALL ON users FROM \(role); REVOKE USAGE ON SEQUENCE later_id_seq FROM \(role)", at: databaseURL)
      await #expect(throws: PostgresError.self) { try await attempt("SELECT FROM users", at: url) }
      try await migrator.up()
      try await attempt("SELECT FROM users; SELECT nextval('later_id_seq')", at: url)
      // A second run changes nothing.
      let state: SQL = """
        SELECT string_agg(xmin::text, ' ' ORDER BY oid) FROM pg_class WHERE relnamespace = 'public'::regnamespace
        """
      let before: String = try await ScriptConnection.run(databaseURL) { try $0.rows(state)[0][0] }
      try await migrator.up()
      let after: String = try await ScriptConnection.run(databaseURL) { try $0.rows(state)[0][0] }
      #expect(before == after)
    }
    try await attempt("DROP ROLE \(role)", at: administration)
  }

  @Test func `a role that does not exist, or that can do more, is named`() async throws {
    try await TestCluster.withDatabase { databaseURL in
      let missing = Muster.ownersEnvironment(databaseURL).merging(["MUSTER_DATABASE_ROLE": "no_such_role"]) { $1 }
      let refused = try await muster("migrate", environment: missing)
      #expect(refused.status != 0 && refused.errors.count == 1, "\(refused)")
      #expect(refused.errors.first?.contains("there is no role no_such_role") == true, "\(refused)")
      let role = "role_\(UUID().uuidString.prefix(8).lowercased())"
      try await attempt("CREATE ROLE \(role) LOGIN; GRANT CREATE ON SCHEMA public TO \(role)", at: databaseURL)
      let excessive = Muster.ownersEnvironment(databaseURL).merging(["MUSTER_DATABASE_ROLE": role]) { $1 }
      let warned = try await muster("migrate", environment: excessive)
      #expect(warned.status == 0 && warned.errors.count == 1, "\(warned)")
      #expect(warned.errors.first?.contains("\(role) may create tables in the schema public") == true, "\(warned)")
      for (change, sentence) in [
        ("REVOKE CREATE ON SCHEMA public FROM \(role); GRANT TRIGGER ON events TO \(role)", "add triggers to it"),
        ("REVOKE TRIGGER ON events FROM \(role); ALTER ROLE \(role) CREATEDB", "may create roles or databases"),
      ] {
        try await attempt(change, at: databaseURL)
        let warned = try await muster("migrate", environment: excessive)
        #expect(warned.status == 0 && warned.errors.count == 1, "\(warned)")
        #expect(warned.errors.first?.contains(sentence) == true, "\(warned)")
      }
      try await attempt("DROP OWNED BY \(role); DROP ROLE \(role)", at: databaseURL)
    }
  }
}
