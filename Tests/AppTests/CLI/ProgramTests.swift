import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// The commands as real processes with real databases.
@Suite struct ProgramTests {
  private func run(_ arguments: String..., environment: [String: String] = [:]) async throws -> Program {
    let program = try await Program(Program.path("muster"), arguments, environment: environment, in: "/tmp")
    _ = try await program.exitStatus()
    return program
  }

  @Test func `the whole story runs on two servers and two workers`() async throws {
    try await TestApp.withDatabase { databaseURL in
      var environment = Muster.environment(databaseURL)
      environment["MUSTER_ACCESS_TOKEN_SECONDS"] = "30"
      let muster = Program.path("muster")
      func start(_ arguments: String...) async throws -> Program {
        try await Program(muster, arguments, environment: environment)
      }
      let servers = [try await start("serve", "--port", "0"), try await start("serve", "--port", "0")]
      var addresses: [Substring] = []
      for server in servers {
        try await server.waitForOutput("listening")
        addresses.append(try #require(server.standardError.firstMatch(of: /http:\/\/127\.0\.0\.1:\d+/)?.0))
      }
      let urls = addresses.joined(separator: ",")

      func runStory(_ more: [String: String]) async throws {
        let story = try await Program(
          Program.checkout.appending(path: "Scripts/story").path, [urls, databaseURL],
          environment: environment.merging(more) { $1 }.merging(["MUSTER": muster]) { $1 })
        #expect(try await story.exitStatus(within: .seconds(120)) == 0, "\(story.standardOutput)\(story.standardError)")
      }
      // First without a worker, so that the script can inspect the queue, then with two workers.
      try await runStory([:])
      let workers = [try await start("worker"), try await start("worker")]
      for worker in workers { try await worker.waitForOutput("working") }
      try await runStory(["STORY_WORKER": "running", "STORY_TOKEN_WAIT": "0"])
      for program in servers + workers { program.signal(SIGTERM) }
      for program in servers + workers { #expect(try await program.exitStatus(within: .seconds(12)) == 0) }
      // No process logged a token, a password, an address or a body.
      for program in servers + workers {
        for secret in ["@", "eyJ", "mr1.", "mm1.", "password"] { #expect(!program.standardError.contains(secret)) }
      }
    }
  }

  @Test func `an installed binary migrates, seeds and serves outside the checkout`() async throws {
    try await TestCluster.withDatabase { databaseURL in
      let folder = "/tmp/muster-installed-\(UUID().uuidString.prefix(8))"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let installed = folder + "/muster"
      try FileManager.default.copyItem(atPath: Program.path("muster"), toPath: installed)
      func muster(_ arguments: String...) async throws -> Program {
        // Only the owner of the tables can migrate; everything else runs as the limited role.
        let environment =
          arguments[0] == "migrate" ? Muster.ownersEnvironment(databaseURL) : Muster.environment(databaseURL)
        let program = try await Program(installed, arguments, environment: environment, in: folder)
        #expect(try await program.exitStatus() == 0, "\(program.standardError)")
        return program
      }
      #expect(try await muster("migrate").standardOutput.hasSuffix("up to date\n"))
      #expect(try await muster("migrate").standardOutput == "up to date\n")
      #expect(try await muster("migrate", "verify").standardOutput == "verified\n")
      let status = try JSON(parsing: try await muster("migrate", "status", "--json").standardOutput.utf8)
      #expect(status.array.count == Resources.migrations.count)
      #expect(status.array.allSatisfy { $0["state"].string == "applied" })
      _ = try await muster("seed", "demo")
      let server = try await Program(
        installed, ["serve", "--port", "0"], environment: Muster.environment(databaseURL), in: folder)
      try await server.waitForOutput("listening")
      let address = try #require(server.standardError.firstMatch(of: /http:\/\/127\.0\.0\.1:\d+/)?.0)
      let document = try await Program("/usr/bin/env", ["curl", "-fs", "\(address)/openapi.yaml"])
      #expect(try await document.exitStatus() == 0)
      #expect(document.standardOutput == Resources.openAPI)
      server.signal(SIGTERM)
      #expect(try await server.exitStatus() == 0)
      _ = try await muster("worker", "--once")
      for typo in ["", "3", "zzz"] {
        let refused = try await Program(
          installed, ["migrate", "down", "--to", typo], environment: Muster.ownersEnvironment(databaseURL),
          in: folder)
        #expect(try await refused.exitStatus() != 0, "\(typo)")
      }
      #expect(try await muster("migrate", "verify").standardOutput == "verified\n")
      _ = try await muster("migrate", "down", "--to", "0000", "--yes")
    }
  }

  @Test func `the service rejects an outdated schema and names the missing migrations`() async throws {
    try await TestCluster.withDatabase { databaseURL in
      for command in ["serve", "worker"] {
        let program = try await run(command, environment: Muster.environment(databaseURL))
        #expect(program.standardError.contains("0001_users"))
        #expect(program.standardError.contains("muster migrate"))
        #expect(program.standardError.split(separator: "\n").count == 1)
      }
    }
  }

  @Test func `a database with a setting that would lose text is refused with one line that names it`() async throws {
    func check(_ databaseURL: String, _ setting: String, _ value: String) async throws {
      for command in [["migrate"], ["migrate", "status"], ["migrate", "verify"], ["serve"], ["worker"]] {
        let program = try await Program(
          Program.path("muster"), command, environment: Muster.environment(databaseURL))
        #expect(try await program.exitStatus() != 0, "\(command)")
        #expect(program.standardError.contains("\(setting) is \(value)"), "\(command): \(program.standardError)")
        #expect(program.standardError.split(separator: "\n").count == 1, "\(command): \(program.standardError)")
      }
      let tables: Int = try await ScriptConnection.run(databaseURL) {
        try $0.rows("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")[0][0]
      }
      #expect(tables == 0)
    }
    for encoding in ["LATIN1", "SQL_ASCII"] {
      try await TestCluster.withDatabase(template: "template0 ENCODING '\(encoding)' LOCALE 'C'") {
        try await check($0, "server_encoding", encoding)
      }
    }
    try await TestCluster.withDatabase { databaseURL in
      let name = try #require(databaseURL.firstMatch(of: /\/(test_[a-z0-9]+)\?/)?.1)
      try await ScriptConnection.run(databaseURL) {
        try $0.script("ALTER DATABASE \(name) SET standard_conforming_strings = off")
      }
      try await check(databaseURL, "standard_conforming_strings", "off")
    }
  }

  @Test func `without time zones no program starts, and with them the start-up line names their version`() async throws
  {
    let made = try MadeZones(version: "2099z", [:], links: ["Old/Name": "Not/Installed"])
    defer { made.remove() }
    try await TestApp.withDatabase { databaseURL in
      var environment = Muster.environment(databaseURL)
      environment["MUSTER_TZDIR"] = "/nowhere"
      for arguments in [["serve", "--port", "0"], ["worker", "--once"], ["seed", "demo"], ["seed", "load"]] {
        let program = try await Program(Program.path("muster"), arguments, environment: environment, in: "/tmp")
        #expect(try await program.exitStatus() != 0, "\(arguments)")
        let line = program.standardError
        #expect(line.contains("install the package tzdata") && line.contains("/nowhere"), "\(line)")
        #expect(line.split(separator: "\n").count == 1, "\(line)")
      }
      environment["MUSTER_TZDIR"] = made.folder.path
      let worker = try await run("worker", "--once", environment: environment)
      #expect(try await worker.exitStatus() == 0, "\(worker.standardError)")
      let started = worker.standardError.split(separator: "\n").first { $0.contains("started") }
      #expect(started?.contains("2099z") == true && worker.standardError.contains("tzdata-legacy"))
    }
  }

  @Test func `a newer schema is accepted unless a migration is breaking`() async throws {
    try await TestApp.withDatabase { databaseURL in
      let database = try Database(Database.Configuration(url: databaseURL))
      defer { database.close() }
      try await database.execute(
        "INSERT INTO schema_migrations (version, name, checksum, breaking) VALUES ('9000', '9000_later', 'x', false)")
      let worker = try await run("worker", "--once", environment: Muster.environment(databaseURL))
      #expect(worker.standardError.contains("9000_later"))
      #expect(try await worker.exitStatus() == 0)
      try await database.execute("UPDATE schema_migrations SET breaking = true WHERE version = '9000'")
      let refused = try await run("worker", "--once", environment: Muster.environment(databaseURL))
      #expect(try await refused.exitStatus() != 0)
      #expect(refused.standardError.contains("9000_later"))
    }
  }

  @Test func `no migration before the first release is breaking`() async throws {
    try await TestCluster.withDatabase { databaseURL in
      let migrations = try await Migrator(url: databaseURL, migrations: Resources.migrations).status()
      #expect(migrations.count > 1)
      #expect(migrations.filter(\.isBreaking).isEmpty)
    }
  }

  @Test func `no migration before the first release corrects an earlier one`() {
    var tables: [Substring: String] = [:]
    for (file, text) in Embedded.migrations.sorted(by: { $0.key < $1.key }) {
      let up = text.split(separator: "\n").prefix { $0 != "-- down" }
      let lines = up.filter { !$0.drop { $0 == " " }.hasPrefix("--") }.joined(separator: "\n")
      // A function may drop things once it is called.
      let code = lines.replacing(/(?s)\$\$.*?\$\$/, with: "")
      #expect(!code.contains(/\b(DROP|RENAME|OR REPLACE)\b/), "\(file)")
      for table in code.matches(of: /CREATE TABLE (\w+)/) { tables[table.1] = file }
      for table in code.matches(of: /ALTER TABLE (\w+)/) { #expect(tables[table.1] == file, "\(file): \(table.1)") }
    }
    #expect(tables.count > 20)
  }

  @Test func `missing and malformed settings stop the program with one line that names them`() async throws {
    try await TestApp.withDatabase { databaseURL in
      let good = Muster.environment(databaseURL)
      for (name, value) in [
        ("DATABASE_URL", ""), ("DATABASE_URL", "postgresql://m:s3c%zzret@h/x"),
        ("DATABASE_URL", "postgresql://m:s3c/ret@h/x"),
        ("DATABASE_URL", "postgresql://m:s3cret@[::1/x"), ("MUSTER_ACCESS_TOKEN_KEYS", ""),
        ("MUSTER_ACCESS_TOKEN_KEYS", "k:c2hvcnQ="), ("MUSTER_REFRESH_TOKEN_KEYS", "nonsense"),
        ("MUSTER_ADDRESS_KEYS", ""), ("MUSTER_ADDRESS_KEYS", "k:c2hvcnQ="), ("MUSTER_VISITOR_MAILS", "no"),
        ("MUSTER_ACCESS_TOKEN_SECONDS", "-1"), ("MUSTER_SCRYPT", "ln=99,r=8,p=1"), ("MUSTER_LOG_REQUESTS", "some"),
        ("MUSTER_PGBOUNCER", "1"), ("MUSTER_THROTTLING", "maybe"), ("MUSTER_TRUSTED_PROXIES", "10.0.0.0/33"),
        ("MUSTER_WEBHOOK_ALLOW_PRIVATE", "yes"), ("MUSTER_PUBLIC_URL", ""), ("MUSTER_POOL_SIZE", "0"),
        ("MUSTER_MAX_CONNECTIONS", "many"), ("MUSTER_CONNECTIONS_PER_ADDRESS", "-1"), ("MUSTER_DRAIN_SECONDS", "301"),
        ("MUSTER_EVENT_RETENTION_DAYS", "179"), ("MUSTER_EVENT_RETENTION_DAYS", "kept"),
        ("MUSTER_LOG_ADDRESSES", "yes"), ("MUSTER_REFRESH_TOKEN_KEYS_FILE", "/nonexistent"),
        ("MUSTER_MAIL_WEBHOOK", "http://mail.example/s3cret"), ("MUSTER_MAIL_WEBHOOK", "mail.example/s3cret"),
        ("MUSTER_MAIL_WEBHOOK", "https://"), ("MUSTER_MAIL_WEBHOOK", "https://mail.example/s3cret"),
        ("MUSTER_MAIL_WEBHOOK_SECRET", "whsec_c2hvcnQ="),
        ("MUSTER_GOOGLE_KEYS_URL", "http://127.0.0.1/keys"),
        ("MUSTER_APPLE_REVOKE_URL", "nonsense"), ("MUSTER_APPLE_KEY_ID", "KEY"), ("MUSTER_APPLE_PRIVATE_KEY", "s3cret"),
        ("MUSTER_TRUSTED_CERTIFICATES", "/nonexistent"),
        ("MUSTER_TLS_CERTIFICATE", "/nonexistent"), ("MUSTER_TLS_KEY", "/nonexistent"),
        ("MUSTER_CORS_ORIGINS", "app.example.com"),
        ("MUSTER_APNS_TEAM_ID", "TEAM"), ("MUSTER_APNS_PRIVATE_KEY", "s3cret"), ("MUSTER_APNS_URL", "api.example"),
        ("MUSTER_APNS_SANDBOX_URL", "http://api.example"), ("MUSTER_FCM_URL", "http://fcm.example"),
        ("MUSTER_FCM_SERVICE_ACCOUNT", "/nonexistent/s3cret.json"),
        ("MUSTER_FCM_SERVICE_ACCOUNT", #"{"project_id": "muster", "private_key": "s3cret"}"#),
        ("MUSTER_METRICS_LISTEN", "9464"),
        ("MUSTER_METRICS_LISTEN", "127.0.0.1:99999"), ("MUSTER_METRICS_LISTEN", "::1:9464"),
      ] {
        let program = try await run("serve", "--port", "0", environment: good.merging([name: value]) { $1 })
        #expect(try await program.exitStatus() != 0, "\(name)=\(value)")
        #expect(program.standardError.split(separator: "\n").count == 1, "\(program.standardError)")
        #expect(program.standardError.contains(name), "\(name): \(program.standardError)")
        for secret in ["c2hvcnQ=", "s3c"] { #expect(!program.standardError.contains(secret)) }
      }
    }
  }

  @Test func `fresh keys are accepted as they are printed`() async throws {
    let printed = try await run("keys").standardOutput
    let lines = printed.split(separator: "\n").map { $0.split(separator: "=", maxSplits: 1).map(String.init) }
    #expect(lines.map { $0[0] } == ["MUSTER_ACCESS_TOKEN_KEYS", "MUSTER_REFRESH_TOKEN_KEYS", "MUSTER_ADDRESS_KEYS"])
    for line in lines { #expect(throws: Never.self) { try SigningKeys(line[1]) } }
    #expect(Set(lines.map { $0[1] }).count == 3)
  }
}
