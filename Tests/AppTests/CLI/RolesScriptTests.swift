import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// `deploy/roles.sql`, which PostgreSQL's container and Patroni run, on a server of its own.
@Suite struct RolesScriptTests {
  private static let passwords = (owner: "the owner's \"own\" $(password)", service: "another one; \\ 'x")

  private func attempt(_ statement: String, at url: String) async throws {
    try await ScriptConnection.run(url, timeout: .seconds(60)) { try $0.script(statement) }
  }

  private func memory(at url: String) async throws -> String {
    try await ScriptConnection.run(url, timeout: .seconds(60)) { try $0.rows("SHOW work_mem")[0][0] }
  }

  /// Hands the URL of the superuser to `body`. As in the container, her name is not that of the service's role, and
  /// everyone else needs a password.
  private func withServer(_ body: (_ administration: String) async throws -> Void) async throws {
    try await OwnCluster.run { cluster in
      try await attempt("CREATE ROLE postgres LOGIN SUPERUSER", at: cluster.url)
      let administration = cluster.url.replacing("://muster@", with: "://postgres@")
      #expect(administration != cluster.url)
      try await attempt("ALTER ROLE muster RENAME TO initial", at: administration)
      let rules: String = try await ScriptConnection.run(administration) { try $0.rows("SHOW hba_file")[0][0] }
      try "local all postgres trust\nlocal all all scram-sha-256\n".write(
        toFile: rules, atomically: false, encoding: .utf8)
      try await attempt("SELECT pg_reload_conf()", at: administration)
      try await body(administration)
    }
  }

  private func runScript(at administration: String, owner: String, service: String) async throws {
    let programs: String = try await ScriptConnection.run(administration) {
      try $0.rows("SELECT setting FROM pg_config WHERE name = 'BINDIR'")[0][0]
    }
    let socket = try #require(administration.firstMatch(of: /host=([^&]+)/)?.1.removingPercentEncoding)
    let script = try await Program(
      "\(programs)/psql",
      ["--no-psqlrc", "--file", Program.checkout.appending(path: "deploy/roles.sql").path, "postgres"],
      environment: [
        "PATH": "/usr/bin:/bin", "PGHOST": socket, "PGPORT": "5432", "PGUSER": "postgres",
        "POSTGRES_OWNER_PASSWORD": owner, "POSTGRES_SERVICE_PASSWORD": service,
      ], in: "/")
    #expect(try await script.exitStatus() == 0, "\(script.standardError)")
    #expect(script.standardError.isEmpty && script.standardOutput.isEmpty, "\(script.standardError)")
  }

  private func url(_ role: String, _ password: String, _ administration: String, database: String = "muster") -> String
  {
    let coded = password.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    return administration.replacing("://postgres@/postgres", with: "://\(role):\(coded)@/\(database)")
  }

  @Test func `with its roles, the owner migrates, and the service and the worker do the whole story and nothing else`()
    async throws
  {
    try await withServer { administration in
      let (ownerPassword, servicePassword) = Self.passwords
      try await runScript(at: administration, owner: ownerPassword, service: servicePassword)
      let owner = url("muster_owner", ownerPassword, administration)
      let service = url("muster", servicePassword, administration)

      var environment = Muster.environment(service)
      environment["MUSTER_ACCESS_TOKEN_SECONDS"] = "30"
      #expect(environment["DATABASE_URL"] == service)
      func muster(_ arguments: String..., url: String) async throws -> Program {
        let settings = environment.merging(["DATABASE_URL": url, "MUSTER_DATABASE_ROLE": "muster"]) { $1 }
        return try await Program(Program.path("muster"), arguments, environment: settings, in: "/tmp")
      }
      let early = try await muster("migrate", url: service)
      #expect(try await early.exitStatus() != 0)
      let migrate = try await muster("migrate", url: owner)
      #expect(try await migrate.exitStatus() == 0, "\(migrate.standardError)")
      #expect(!migrate.standardError.contains("more rights"), "\(migrate.standardError)")

      // Again, with other passwords: the database and the rights stay.
      try await runScript(at: administration, owner: ownerPassword, service: "changed")
      await #expect(throws: PostgresError.self) { try await attempt("SELECT 1", at: service) }
      try await runScript(at: administration, owner: ownerPassword, service: servicePassword)

      let server = try await muster("serve", "--port", "0", url: service)
      let worker = try await muster("worker", url: service)
      defer { for program in [server, worker] { program.signal(SIGKILL) } }
      try await server.waitForOutput("listening")
      try await worker.waitForOutput("working")
      let address = try #require(server.standardError.firstMatch(of: /http:\/\/127\.0\.0\.1:\d+/)?.0)
      let story = try await Program(
        Program.checkout.appending(path: "Scripts/story").path, [String(address), service],
        environment: environment.merging(["STORY_WORKER": "running", "STORY_TOKEN_WAIT": "0"]) { $1 })
      #expect(try await story.exitStatus(within: .seconds(120)) == 0, "\(story.standardOutput)\(story.standardError)")
      for program in [server, worker] {
        program.signal(SIGTERM)
        let status = try await program.exitStatus()
        #expect(status == 0, "\(status): \(program.standardError.suffix(2000))")
        #expect(!program.standardError.contains("permission denied"), "\(program.standardError)")
      }

      try await expectRefusals(of: service, administration)
    }
  }

  private func expectRefusals(of service: String, _ administration: String) async throws {
    for statement in [
      "CREATE TABLE mine (n int)", "CREATE TEMPORARY TABLE mine (n int)", "CREATE SCHEMA mine", "CREATE DATABASE mine",
      "CREATE ROLE mine", "ALTER ROLE muster SUPERUSER", "SET ROLE muster_owner", "DROP TABLE users CASCADE",
      "DROP DATABASE muster", "TRUNCATE users CASCADE", "DELETE FROM schema_migrations", "ALTER TABLE users ADD n int",
    ] {
      await #expect(throws: PostgresError.self, "\(statement)") { try await attempt(statement, at: service) }
    }
    try await attempt("SELECT FROM users", at: service)
    // Only slow reads have more memory.
    let given = try await memory(at: service)
    #expect(try await given == memory(at: administration))
    // The other databases of the server, and ours for other roles.
    try await attempt("CREATE ROLE other LOGIN PASSWORD 'other'", at: administration)
    for (role, password, database) in [
      ("muster", Self.passwords.service, "postgres"), ("muster", Self.passwords.service, "template1"),
      ("muster_owner", Self.passwords.owner, "postgres"), ("other", "other", "muster"),
    ] {
      let refused = await #expect(throws: PostgresError.self, "\(role) at \(database)") {
        try await attempt("SELECT 1", at: url(role, password, administration, database: database))
      }
      #expect(refused?.description.contains("permission denied for database") == true, "\(refused?.description ?? "")")
    }
  }
}
