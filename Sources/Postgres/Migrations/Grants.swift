/// The rights of a role that reads and writes the tables, but can neither create, change, drop nor empty them.
///
/// Only what is missing is granted, because each grant on a table makes all sessions read its definition again.
struct Grants {
  private let role: String
  private let schema: String
  /// The schema's id, in a statement.
  private var schemaID: SQL { "(SELECT oid FROM pg_namespace WHERE nspname = \(schema))" }

  /// Nil if there is nothing to grant: the role is the one of this connection, or this connection owns no tables.
  ///
  /// - Throws: ``Migrator/Refusal`` if there is no such role.
  init?(to role: String, on connection: ScriptConnection) throws {
    let here = try connection.rows(
      """
      SELECT current_schema()::text AS schema, current_user::text = \(role) AS is_this,
        EXISTS (SELECT FROM pg_roles WHERE rolname = \(role)) AS exists,
        coalesce(pg_has_role(relowner, 'USAGE'), true) AS is_owner
      FROM (SELECT to_regclass('schema_migrations')::oid AS oid) AS migrations
      LEFT JOIN pg_class USING (oid)
      """)[0]
    if try here["is_this"] || !(here["is_owner"] as Bool) { return nil }
    guard try here["exists"] else {
      throw Migrator.Refusal(
        description: "there is no role \(role) to grant rights to: create it with CREATE ROLE ... LOGIN PASSWORD ...")
    }
    guard let schema = try here["schema"] as String? else {
      throw Migrator.Refusal(description: "the search_path of this role names no schema that exists")
    }
    (self.role, self.schema) = (role, schema)
  }

  /// Grants the rights on what this connection's role creates later.
  ///
  /// - Returns: true, to commit.
  func makeDefaults(on connection: ScriptConnection) throws -> Bool {
    try run(
      """
      SELECT format(
        'ALTER DEFAULT PRIVILEGES IN SCHEMA %1$I GRANT %2$s TO %3$I', \(schema), rights, \(role))
      FROM unnest(ARRAY[
        'SELECT, INSERT, UPDATE, DELETE ON TABLES', 'USAGE ON SEQUENCES', 'EXECUTE ON FUNCTIONS'
      ]) AS rights
      """, on: connection)
    return true
  }

  /// Grants the rights on what exists. `schema_migrations` can only be read.
  ///
  /// - Returns: true, to commit.
  func make(on connection: ScriptConnection, warning: (String) -> Void) throws -> Bool {
    try run(
      """
      SELECT format('GRANT USAGE ON SCHEMA %I TO %I', \(schema), \(role))
      WHERE NOT has_schema_privilege(\(role), \(schema), 'USAGE')
      UNION ALL
      SELECT format('GRANT %s ON %s TO %I', r.name, c.oid::regclass, \(role))
      FROM pg_class AS c
      CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS r (name)
      WHERE c.relnamespace = \(schemaID) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
        AND pg_has_role(c.relowner, 'USAGE') AND (c.relname <> 'schema_migrations' OR r.name = 'SELECT')
        AND NOT has_table_privilege(\(role), c.oid, r.name)
      UNION ALL
      SELECT format('GRANT USAGE ON SEQUENCE %s TO %I', c.oid::regclass, \(role))
      FROM pg_class AS c
      WHERE c.relnamespace = \(schemaID) AND pg_has_role(c.relowner, 'USAGE')
        -- The function fails for other relations, and PostgreSQL chooses the order of conditions.
        AND CASE WHEN c.relkind = 'S' THEN NOT has_sequence_privilege(\(role), c.oid, 'USAGE') END
      UNION ALL
      SELECT format('GRANT EXECUTE ON ROUTINE %s TO %I', p.oid::regprocedure, \(role))
      FROM pg_proc AS p
      WHERE p.pronamespace = \(schemaID) AND pg_has_role(p.proowner, 'USAGE')
        AND NOT has_function_privilege(\(role), p.oid, 'EXECUTE')
      UNION ALL
      -- The default privileges include it if the table is new.
      SELECT format('REVOKE INSERT, UPDATE, DELETE ON schema_migrations FROM %I', \(role))
      WHERE has_table_privilege(\(role), 'schema_migrations', 'INSERT, UPDATE, DELETE')
      UNION ALL
      -- Before PostgreSQL 15, everyone may create tables in the schema public.
      SELECT format('REVOKE CREATE ON SCHEMA %I FROM PUBLIC', \(schema))
      FROM pg_namespace
      WHERE nspname = \(schema) AND pg_has_role(nspowner, 'USAGE') AND has_schema_privilege(\(role), \(schema), 'CREATE')
      UNION ALL
      -- Everyone may create temporary tables.
      SELECT format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', datname)
      FROM pg_database
      WHERE datname = current_database() AND pg_has_role(datdba, 'USAGE')
        -- By its oid: another database, whose row may be read first, may be gone by now.
        AND has_database_privilege(\(role), oid, 'TEMPORARY')
      """, on: connection)
    for excess in try excesses(on: connection) { warning("the role \(role) \(excess)") }
    return true
  }

  /// The role's rights beyond those that it needs.
  private func excesses(on connection: ScriptConnection) throws -> [String] {
    try connection.rows(
      """
      SELECT 'is a superuser: create another one' FROM pg_roles WHERE rolname = \(role) AND rolsuper
      UNION ALL
      SELECT format('may create tables in the schema %s: revoke CREATE from it and from PUBLIC', \(schema))
      WHERE has_schema_privilege(\(role), \(schema), 'CREATE')
      UNION ALL
      SELECT 'may create roles or databases, replicate, or pass row security: revoke that'
      FROM pg_roles WHERE rolname = \(role) AND (rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)
      UNION ALL
      -- With a trigger, the role would run its own code as the next role that writes the table.
      SELECT format('may truncate %s, refer to it, or add triggers to it: revoke that', oid::regclass)
      FROM pg_class
      WHERE relnamespace = \(schemaID) AND relkind IN ('r', 'p')
        AND has_table_privilege(\(role), oid, 'TRUNCATE, REFERENCES, TRIGGER')
      UNION ALL
      SELECT 'is a member of the owner of the tables: revoke that'
      FROM pg_class WHERE oid = to_regclass('schema_migrations') AND pg_has_role(\(role), relowner, 'MEMBER')
      LIMIT 1
      """
    ).map { try $0[0] }
  }

  /// Runs the statements that a query returns.
  private func run(_ query: SQL, on connection: ScriptConnection) throws {
    for row in try connection.rows(query) { try connection.script(try row[0]) }
  }
}
