import Foundation
import Postgres
import TestSupport

/// How the client under test reaches the server: `MUSTER_TEST_TRANSPORT`. The tests themselves always use the server's
/// Unix socket.
enum Transport: String {
  case socket, tcp, tls, pgbouncer

  static let current: Transport = {
    let name = ProcessInfo.processInfo.environment["MUSTER_TEST_TRANSPORT"] ?? "socket"
    guard let transport = Transport(rawValue: name) else {
      preconditionFailure("MUSTER_TEST_TRANSPORT must be socket, tcp, tls or pgbouncer")
    }
    return transport
  }()

  /// Creates a database for one test and drops it afterwards.
  ///
  /// - Parameter body: gets the URL of the server's socket and that of this transport.
  func withDatabase<Value: Sendable>(
    _ body: (_ server: String, _ client: String) async throws -> Value
  ) async throws -> Value {
    switch self {
    case .socket:
      return try await TestCluster.withDatabase { try await body($0, $0) }
    case .pgbouncer:
      return try await TestCluster.withDatabase { url in
        guard let pooled = try await TestCluster.pooled(url) else {
          throw Unexpected("MUSTER_TEST_PGBOUNCER is missing")
        }
        return try await body(url, pooled)
      }
    case .tcp, .tls:
      let server = try await TLSServer.shared.value
      let name = "test_\(UUID().uuidString.lowercased().replacing("-", with: ""))"
      let administration = Server(url: server.plainURL)
      try await administration.script("CREATE DATABASE \(name)")
      func database(_ url: String) -> String { url.replacing("/postgres?", with: "/\(name)?") }
      do {
        let value = try await body(database(server.plainURL), database(self == .tls ? server.url : server.tcpURL))
        try await administration.script("DROP DATABASE \(name) WITH (FORCE)")
        return value
      } catch {
        // The test's own error matters more.
        try? await administration.script("DROP DATABASE \(name) WITH (FORCE)")
        throw error
      }
    }
  }
}
