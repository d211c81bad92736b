import Foundation
import Postgres
import TestSupport
import Testing

/// A PostgreSQL server that listens on TCP, with TLS and a certificate of its own authority. Without TLS, it accepts only
/// the user `plain`.
struct TLSServer: Sendable {
  /// The URL with `sslmode=verify-full` and the server's authority.
  let url: String
  /// The URL of its Unix socket, which has no TLS.
  let plainURL: String
  /// The URL with an authority that did not sign the server's certificate.
  let strangerURL: String

  private let folder: String
  private let program: Program

  /// Starts a server for one test, and stops and deletes it when `body` ends.
  static func run(_ body: (TLSServer) async throws -> Void) async throws {
    let server = try await start()
    defer { try? FileManager.default.removeItem(atPath: server.folder) }
    do {
      try await body(server)
    } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  /// The server that all tests of a run share if they run over TCP or TLS: see ``Transport``.
  static let shared = Task {
    let server = try await start()
    running.withLock { $0 = server }
    atexit {
      guard let server = running.withLock({ $0 }) else { return }
      server.program.signal(SIGQUIT)
      server.program.end()
      try? FileManager.default.removeItem(atPath: server.folder)
    }
    return server
  }

  private static let running = Lock<TLSServer?>(nil)

  private static func start() async throws -> TLSServer {
    let programs = try await ServerPrograms()
    let folder = try programs.makeFolder("tls")
    // The accounts of the tests and of the server must both be able to read the certificates.
    chmod(folder, 0o755)
    try "subjectAltName=DNS:localhost\n".write(toFile: "\(folder)/names", atomically: true, encoding: .utf8)
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    for step in [
      "req -x509 \(key) -keyout ca.key -out ca.crt -days 2 -subj /CN=authority",
      "req -x509 \(key) -keyout stranger.key -out stranger.crt -days 2 -subj /CN=authority",
      "req \(key) -keyout server.key -out server.csr -subj /CN=localhost",
      "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt -days 2 -extfile names",
    ] {
      try await programs.run("/usr/bin/env", ["openssl"] + step.split(separator: " ").map(String.init), in: folder)
    }
    try await programs.run(
      "initdb",
      [
        "--pgdata=\(folder)/data", "--username=muster", "--encoding=UTF8", "--locale=C", "--auth-local=trust",
        "--auth-host=reject", "--no-sync",
      ])
    let access = "local all all trust\nhostssl all all 127.0.0.1/32 trust\nhost all plain 127.0.0.1/32 trust\n"
    try access.write(toFile: "\(folder)/access", atomically: true, encoding: .utf8)

    let port = Int.random(in: 20_000..<30_000)
    let settings = [
      "listen_addresses=127.0.0.1", "port=\(port)", "unix_socket_directories=\(folder)", "hba_file=\(folder)/access",
      "ssl=on", "ssl_cert_file=\(folder)/server.crt", "ssl_key_file=\(folder)/server.key", "fsync=off",
      "shared_buffers=32MB", "max_connections=800",
    ]
    let program = try await programs.start("postgres", ["-D", "\(folder)/data"] + settings.flatMap { ["-c", $0] })
    func url(_ authority: String) -> String {
      "postgresql://muster@localhost:\(port)/postgres?hostaddr=127.0.0.1&sslmode=verify-full"
        + "&sslrootcert=\(folder)/\(authority).crt"
    }
    let server = TLSServer(
      url: url("ca"), plainURL: "postgresql://muster@/postgres?host=\(folder)&port=\(port)",
      strangerURL: url("stranger"), folder: folder, program: program)
    do {
      try await eventually("the server is ready") {
        if !program.isRunning { throw Unexpected("the server ended: \(program.standardError)") }
        return (try? await Server(url: server.plainURL).value("SELECT 1")) == 1
      }
      try await Server(url: server.plainURL).script("CREATE ROLE plain LOGIN SUPERUSER")
    } catch {
      await server.stop()
      try? FileManager.default.removeItem(atPath: folder)
      throw error
    }
    return server
  }

  /// The URL without TLS.
  var tcpURL: String {
    url.replacing("muster@", with: "plain@").replacing("sslmode=verify-full", with: "sslmode=disable")
  }

  private func stop() async {
    program.signal(SIGQUIT)
    // Detached, so that it also works in a cancelled task.
    _ = await Task.detached { try? await program.exitStatus(within: .seconds(10)) }.value
  }
}
