import Foundation
import Logging
import Postgres
import TestSupport
import Testing
import Yams

@testable import App

/// Configuration by environment variables and files.
@Suite struct ConfigurationTests {
  private let good = Muster.environment("postgresql://localhost/muster")

  private func file(_ text: String) throws -> String {
    let path = FileManager.default.temporaryDirectory.appending(path: "muster-\(UUID().uuidString)").path
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    return path
  }

  private func problem(
    _ environment: [String: String], for program: MusterConfiguration.Program = .serve, file: String? = nil
  ) async throws -> String {
    var said = ""
    do {
      _ = try await MusterConfiguration.load(
        for: program, environment: good.merging(environment) { $1 }, file: file)
    } catch let problem as MusterConfiguration.Problem {
      said = problem.description
    }
    return said
  }

  // MARK: The table

  @Test func `the guide and the help show the table of variables`() async throws {
    let guide = try String(contentsOf: Program.checkout.appending(path: "docs/configuration.md"), encoding: .utf8)
    let rows = guide.split(separator: "\n").map(String.init)
    let start: Int = try #require(rows.firstIndex(of: "## Configuration"))
    let end: Int = try #require(rows.firstIndex(of: "## Commands"))
    let table = rows[start..<end].filter { $0.hasPrefix("| `") }
    let expected = Variable.all.map { variable in
      let fallback = variable.value.map { "`\($0)`" } ?? variable.fallback
      return "| `\(variable.name)` | \(fallback) | \(variable.help) |"
    }
    #expect(table == expected)

    let help = try await Program(Program.path("muster"), ["--help"])
    #expect(try await help.exitStatus() == 0)
    let names = help.standardOutput.matches(of: /\n  (DATABASE_URL|MUSTER_[A-Z_]+)/).map { String($0.1) }
    #expect(names == Variable.all.map(\.name))
  }

  @Test func `each variable is in the table once, and each default is valid`() async throws {
    let names = Variable.all.map(\.name)
    #expect(Set(names).count == names.count)
    let source = try String(
      contentsOf: Program.checkout.appending(path: "Sources/App/Configuration/Variable.swift"), encoding: .utf8)
    let named = Set(source.matches(of: /"(DATABASE_URL|MUSTER_[A-Z_]+)"/).map { String($0.1) })
    #expect(named.subtracting(names) == ["MUSTER_PORT"])
    #expect(try await problem([:]) == "")
  }

  // MARK: Where values come from

  @Test func `an env file may have quotes, export, comments, CRLF and multiline values`() throws {
    let text = [
      "\u{feff}# a comment = none", "PLAIN=a=b c", "  SPACED =  x  ", "export EXPORTED=1", "SINGLE='a \"b\" \\n # c'",
      "DOUBLE=\"a 'b'\\n\\\"c\\\" # d\" # comment", "COMMENTED=x # comment", "HASH=x#y", "EMPTY=",
      "ONLY_COMMENTED= # comment", "TABBED=\t#comment", "FIRST_HASH=#x",
      "QUOTED_EMPTY=\"\"", "",
      "PEM=\"-----BEGIN-----", "abc", "-----END-----\"", "TWICE=1", "TWICE=2",
    ]
    let expected = [
      "PLAIN": "a=b c", "SPACED": "x", "EXPORTED": "1", "SINGLE": "a \"b\" \\n # c", "DOUBLE": "a 'b'\n\"c\" # d",
      "COMMENTED": "x", "HASH": "x#y", "EMPTY": "", "ONLY_COMMENTED": "", "TABBED": "", "FIRST_HASH": "#x",
      "QUOTED_EMPTY": "", "PEM": "-----BEGIN-----\nabc\n-----END-----",
      "TWICE": "2",
    ]
    for end in ["\n", "\r\n"] {
      for last in [end, ""] {
        let values = try EnvironmentFile(parsing: text.joined(separator: end) + last, name: ".env").values
        #expect(values == expected)
      }
    }
  }

  @Test func `an error in an env file names the line, and does not quote it`() {
    for (text, line) in [
      ("A=1\n\ns3cret", 3), ("A=1\r\nB=\"s3cret\r\nC=2", 2), ("A='s3cret' s3cret", 1), ("=s3cret", 1),
      ("A B=s3cret", 1),
      ("A=\"x\ny\"\n=s3cret", 3),
    ] {
      let problem = #expect(throws: MusterConfiguration.Problem.self) {
        try EnvironmentFile(parsing: text, name: ".env")
      }
      #expect(problem?.description.hasPrefix(".env, line \(line): ") == true, "\(text): \(problem?.description ?? "")")
      #expect(problem?.description.contains("s3cret") == false)
    }
  }

  @Test func `the environment takes precedence over the file, and the file over defaults`() async throws {
    let path = try file("export MUSTER_POOL_SIZE='3'\r\nMUSTER_SCRYPT=\"ln=5,r=8,p=1\"\r\n")
    defer { try? FileManager.default.removeItem(atPath: path) }
    let configuration = try await MusterConfiguration.load(environment: good, file: path)
    #expect(configuration.poolSize == 3)
    #expect(configuration.database("test", logger: .init(label: "test")).connections == 3)
    #expect(configuration.scrypt == Passwords.Cost("ln=4,r=8,p=1"))
    #expect(configuration.accessTokenSeconds == 900)
  }

  @Test func `each secret may come from a file, without the line break at its end`() async throws {
    let keys = SigningKeys.generate()
    let path = try file(keys + "\n")
    let empty = try file("\n")
    defer { for path in [path, empty] { try? FileManager.default.removeItem(atPath: path) } }
    let secrets = Variable.all.filter(\.isSecret).map(\.name)
    #expect(secrets.contains("DATABASE_URL") && secrets.contains("MUSTER_FCM_SERVICE_ACCOUNT"))
    for name in Variable.all.map(\.name) where ["SECRET", "PRIVATE_KEY", "TOKEN_KEYS"].contains(where: name.hasSuffix) {
      #expect(secrets.contains(name))
    }
    for name in secrets {
      let variables = Variables(layers: [["\(name)_FILE": path], [name: "weaker"]])
      let variable = try #require(Variable.all.first { $0.name == name })
      #expect(try variables.text(variable) == keys)
      for wrong in ["/nonexistent", empty] {
        let problem = #expect(throws: MusterConfiguration.Problem.self) {
          try Variables(layers: [["\(name)_FILE": wrong], [name: "weaker"]]).text(variable)
        }
        #expect(problem?.description.contains("\(name)_FILE") == true)
        #expect(problem?.description.contains(wrong) == false, "it may be the secret itself")
      }
    }
    let name = "MUSTER_REFRESH_TOKEN_KEYS"
    #expect(try await problem([name: "", "\(name)_FILE": path]) == "")
    #expect(try await problem([name: keys, "\(name)_FILE": path]).contains("\(name)_FILE"))
    #expect(try await problem(["MUSTER_SCRYPT_FILE": path]) == "")
  }

  @Test func `unknown names are reported, wherever they come from`() async throws {
    let path = try file("MUSTER_SCRIPT=ln=4,r=8,p=1\nMUSTER_PORT=8080\nPOSTGRES_PASSWORD=x\n")
    defer { try? FileManager.default.removeItem(atPath: path) }
    let environment = ["MUSTER_RATE_LIMIT": "off", "MUSTER_MAIL_WEBHOOK_SECRET_FILE": "", "MUSTER_SCRYPT_FILE": "x"]
    let configuration = try await MusterConfiguration.load(
      environment: good.merging(environment) { $1 }, file: path)
    #expect(configuration.unknownVariables == ["MUSTER_RATE_LIMIT", "MUSTER_SCRYPT_FILE", "MUSTER_SCRIPT"])

    let program = try await Program(
      Program.path("muster"), ["migrate", "status"],
      environment: ["DATABASE_URL": "postgresql://127.0.0.1:9/muster", "MUSTER_RATE_LIMIT": "s3cret"], in: "/tmp")
    _ = try await program.exitStatus()
    let line = try #require(try program.logLines().first)
    #expect(line["level"].string == "warning")
    #expect(line["variables"][0].string == "MUSTER_RATE_LIMIT")
    #expect(!program.standardError.contains("s3cret"))
  }

  @Test func `the compose file hands each container the variables that its program reads, and no others`() throws {
    let text = try String(contentsOf: Program.checkout.appending(path: "docker-compose.yml"), encoding: .utf8)
    let file = try #require(try Yams.load(yaml: text) as? [String: Any])
    let services = try #require(file["services"] as? [String: [String: Any]])
    #expect(services.values.allSatisfy { $0["env_file"] == nil })
    func names(_ service: String) -> Set<String> {
      Set((services[service]?["environment"] as? [String: Any])?.keys.map { $0 } ?? [])
    }
    let table = Variable.table
    #expect(names("migrate") == [table.databaseURL.name, table.databaseRole.name])
    #expect(names("postgres").allSatisfy { $0.hasPrefix("POSTGRES_") })
    let programs = names("server").union(names("worker"))
    #expect(
      programs.union(names("migrate")) == Set(Variable.all.map(\.name)).subtracting([table.postgresPrograms.name]))
    #expect(names("seed").isSubset(of: names("worker")))
    for (service, secrets) in [
      ("server", [table.mailWebhook, table.mailWebhookSecret, table.apnsKey.privateKey, table.fcmServiceAccount]),
      ("worker", [table.accessTokenKeys, table.tlsKey]),
    ] {
      #expect(names(service).isDisjoint(with: secrets.map(\.name) + ["POSTGRES_PASSWORD"]), "\(service)")
    }
    // Only the superuser's own container knows its password, and only the migration that of the owner.
    for (name, service) in services where name != "postgres" {
      let values = (service["environment"] as? [String: Any])?.values.map { "\($0)" } ?? []
      #expect(!values.contains { $0.contains("POSTGRES_PASSWORD") }, "\(name)")
      #expect(values.contains { $0.contains("POSTGRES_OWNER_PASSWORD") } == (name == "migrate"), "\(name)")
    }
  }

  // MARK: Required variables

  @Test func `the service needs its public URL, and other programs do not`() async throws {
    #expect(try await problem(["MUSTER_PUBLIC_URL": ""]).hasPrefix("MUSTER_PUBLIC_URL "))
    for program in [MusterConfiguration.Program.worker, .dev, .tool] {
      #expect(try await problem(["MUSTER_PUBLIC_URL": ""], for: program) == "")
    }
  }

  @Test func `two variables must not have the same key, under any id`() async throws {
    let names = ["MUSTER_ACCESS_TOKEN_KEYS", "MUSTER_REFRESH_TOKEN_KEYS", "MUSTER_ADDRESS_KEYS"]
    let shared = "c2hhcmVkIHNlY3JldCBvZiBtb3JlIHRoYW4gMzIgYnl0ZXM="
    for (one, other) in [(0, 1), (1, 2), (0, 2)] {
      let said = try await problem([
        names[one]: "a:\(shared)", names[other]: "\(SigningKeys.generate()),b:\(shared)",
      ])
      #expect(said.contains(names[one]) && said.contains(names[other]) && !said.contains(shared), "\(said)")
    }
  }

  @Test func `the published keys are for development only, under any id and among any other keys`()
    async throws
  {
    let (access, refresh) = ("MUSTER_ACCESS_TOKEN_KEYS", "MUSTER_REFRESH_TOKEN_KEYS")
    let address = "MUSTER_ADDRESS_KEYS"
    let none = [access: "", refresh: "", address: ""]
    let configuration = try await MusterConfiguration.load(
      for: .dev, environment: good.merging(none) { $1 }, file: nil)
    #expect(configuration.accessTokenKeys.arePublished && configuration.refreshTokenKeys.arePublished)
    #expect(configuration.addressKeys.arePublished)
    // Keys that `muster dev` has kept come before them, and the environment's come first.
    let kept = try await MusterConfiguration.load(
      for: .dev,
      environment: good.merging([access: "", refresh: "given:" + String(repeating: "ab12", count: 11)]) { $1 },
      file: nil, fallbacks: [access: SigningKeys.generate(), refresh: SigningKeys.generate()])
    #expect(!kept.accessTokenKeys.arePublished && kept.refreshTokenKeys.signing.kid == "given")
    for published in [SigningKeys.published.access, SigningKeys.published.refresh, SigningKeys.published.address] {
      for text in [published, "\(SigningKeys.generate()),\(published)", published.replacing("dev:", with: "mine:")] {
        for program in [MusterConfiguration.Program.serve, .worker] {
          for name in [access, refresh, address] {
            let said = try await problem([name: text], for: program)
            #expect(said.contains(name) && said.contains("published"), "\(said)")
          }
        }
        #expect(try await problem([access: text, refresh: text], for: .dev) == "")
      }
    }
    for command in [["serve", "--port", "0"], ["worker", "--once"]] {
      let program = try await Program(
        Program.path("muster"), command, environment: good.merging([refresh: SigningKeys.published.refresh]) { $1 },
        in: "/tmp")
      #expect(try await program.exitStatus() == 1)
      #expect(program.standardError.contains(refresh))
    }
  }
}
