import Foundation
import Postgres
import TestSupport

@testable import musterctl

/// A service with the demo data in a database of its own, and users with terminals.
struct Demo: Sendable {
  static let password = "plans-with-friends"
  private static let zone = "Europe/Lisbon"

  let url: String
  let databaseURL: String
  /// The users' home folder.
  let home: URL
  private let service: Program

  /// Starts the service and a worker, and stops both when `body` ends.
  static func run(_ body: (Demo) async throws -> Void) async throws {
    try await passMidnight()
    try await template.value
    try await TestCluster.withDatabase(template: templateName) { databaseURL in
      let home = FileManager.default.temporaryDirectory.appending(path: "musterctl-\(UUID().uuidString.prefix(8))")
      try FileManager.default.createDirectory(at: home, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: home) }
      let service = try await Muster.serve(environment: Muster.environment(databaseURL))
      let worker = try await Program(Program.path("muster"), ["worker"], environment: Muster.environment(databaseURL))
      defer {
        service.signal(SIGKILL)
        worker.signal(SIGKILL)
      }
      let url = try await service.address().absoluteString
      try await body(Demo(url: url, databaseURL: databaseURL, home: home, service: service))
    }
  }

  func stop() async throws {
    service.signal(SIGKILL)
    _ = try await service.exitStatus()
  }

  /// Runs `body` while the service takes connections and does not respond.
  func pause(_ body: () async throws -> Void) async throws {
    service.signal(SIGSTOP)
    defer { service.signal(SIGCONT) }
    try await body()
  }

  /// Kills the service, and starts another one at the same address.
  ///
  /// - Parameter absence: runs while the address does not respond, with the address of another service.
  /// - Returns: the new service. The caller ends it.
  func restart(after absence: (_ otherURL: String) async throws -> Void) async throws -> Program {
    try await stop()
    let other = try await Muster.serve(environment: Muster.environment(databaseURL))
    defer { other.signal(SIGKILL) }
    try await absence(try await other.address().absoluteString)
    let next = try await Muster.serve(port: URL(string: url)?.port ?? 0, environment: Muster.environment(databaseURL))
    _ = try await next.address()
    return next
  }

  /// The environment of a user's programs.
  func environment(as profile: String) -> [String: String] {
    [
      "HOME": home.path, "XDG_CONFIG_HOME": home.appending(path: "config").path,
      "XDG_CACHE_HOME": home.appending(path: "cache").path, "TZ": Demo.zone, "TERM": "xterm-256color",
      "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", "MUSTER_SERVER": url, "MUSTER_PROFILE": profile,
      "SWIFT_BACKTRACE": "enable=no",
    ]
  }

  /// Runs musterctl without a terminal, and waits for its end.
  ///
  /// - Parameter input: what a pipe sends to its stdin.
  @discardableResult
  func ctl(
    _ arguments: [String], as profile: String, input: String = "", environment more: [String: String] = [:]
  ) async throws -> (status: Int32, output: String, errors: String) {
    let variables = environment(as: profile).merging(more) { $1 }.merging(["INPUT": input]) { $1 }
    // `Program` has no stdin.
    let line = #"printf %s "$INPUT" | "$0" "$@""#
    let program = try await Program(
      "/bin/sh", ["-c", line, Program.path("musterctl")] + arguments, environment: variables, in: home.path)
    let status = try await program.exitStatus()
    return (status, program.standardOutput, program.standardError)
  }

  /// Runs musterctl without a terminal.
  ///
  /// - Returns: its output.
  /// - Throws: if it fails
  func say(_ line: String, as profile: String) async throws -> String {
    let result = try await ctl(line.shellWords, as: profile)
    guard result.status == 0 else { throw Unexpected("\(line): \(result.status) \(result.errors)") }
    return result.output
  }

  /// Runs musterctl in a terminal.
  func terminal(
    _ line: String, as profile: String, columns: Int = 80, environment more: [String: String] = [:]
  ) throws -> PseudoTerminal {
    try PseudoTerminal(
      Program.path("musterctl"), line.shellWords, environment: environment(as: profile).merging(more) { $1 },
      columns: columns, in: home.path)
  }

  /// Logs users of the demo in, each in a profile of the same name.
  func logIn(_ usernames: String...) async throws {
    for username in usernames {
      let result = try await ctl(["login", username, "--password-stdin"], as: username, input: Demo.password + "\n")
      guard result.status == 0 else { throw Unexpected("login of \(username): \(result.errors)") }
    }
  }

  func execute(_ sql: String) async throws {
    try await ScriptConnection.run(databaseURL) { try $0.script(sql) }
  }

  /// Waits until midnight is over if it is near, so that `tomorrow` is the same day in a whole test.
  private static func passMidnight() async throws {
    let calendar = Calendar.gregorian(in: TimeZone(identifier: zone) ?? .current)
    let soon = calendar.startOfDay(for: Date() + 60)
    if soon > Date() { try await Task.sleep(for: .seconds(soon.timeIntervalSinceNow + 1)) }
  }

  private static let templateName = "musterctl_template"

  private static let template = Task {
    try await TestCluster.makeTemplate(templateName) { url in
      try await Muster.run("migrate", "up", environment: Muster.ownersEnvironment(url))
      try await Muster.run("seed", "demo", environment: Muster.environment(url))
    }
  }
}

extension String {
  /// The words of a command line, with double and single quotes.
  var shellWords: [String] {
    matches(of: /(?:"[^"]*"|'[^']*'|[^\s"'])+/).map { match in
      match.output.matches(of: /"([^"]*)"|'([^']*)'|([^"']+)/).map { $0.1 ?? $0.2 ?? $0.3 ?? "" }.joined()
    }
  }
}
