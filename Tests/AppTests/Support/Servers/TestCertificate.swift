import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOSSL
import TestSupport

@testable import App

/// A certificate for `localhost` that is signed by itself, and its key, in files that a test may replace.
final class TestCertificate: Sendable {
  private let folder: String
  var certificateFile: String { folder + "/certificate.pem" }
  var keyFile: String { folder + "/key.pem" }

  init() async throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "muster-tls-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let openssl = try await Program(
      "/usr/bin/env",
      [
        "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
        "subjectAltName=DNS:localhost", "-keyout", keyFile, "-out", certificateFile,
      ])
    guard try await openssl.exitStatus() == 0 else { throw Unexpected("openssl: \(openssl.standardError)") }
  }

  deinit {
    try? FileManager.default.removeItem(atPath: folder)
  }

  /// The environment of a service with this certificate.
  var environment: [String: String] {
    ["MUSTER_TLS_CERTIFICATE": certificateFile, "MUSTER_TLS_KEY": keyFile]
  }

  var certificate: String { get throws { try String(contentsOfFile: certificateFile, encoding: .utf8) } }
  var key: String { get throws { try String(contentsOfFile: keyFile, encoding: .utf8) } }

  func replace(certificate: String) throws {
    try certificate.write(toFile: certificateFile, atomically: true, encoding: .utf8)
  }

  func replace(key: String) throws {
    try key.write(toFile: keyFile, atomically: true, encoding: .utf8)
  }

  /// Runs `body` with a client that trusts only this certificate, on connections of its own. See ``TestApp/client``.
  ///
  /// - Parameter change: changes the client.
  func trusted<Value: Sendable>(
    _ change: (inout HTTPClient.Configuration) -> Void = { _ in }, _ body: () async throws -> Value
  ) async throws -> Value {
    var configuration = HTTPClient.Configuration()
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(certificate.utf8)))
    configuration.tlsConfiguration = tls
    configuration.connectionPool.retryConnectionEstablishment = false
    change(&configuration)
    let client = HTTPClient(configuration: configuration)
    do {
      let value = try await TestApp.$client.withValue(client) { try await body() }
      try await client.shutdown()
      return value
    } catch {
      try? await client.shutdown()
      throw error
    }
  }

  /// The HTTP version in which the service responds; nil if it has another certificate.
  func version(
    of url: String, _ change: (inout HTTPClient.Configuration) -> Void = { _ in }
  ) async -> HTTPVersion? {
    try? await trusted(change) {
      let request = HTTPClientRequest(url: url + "/health/live")
      let response = try await TestApp.client.execute(request, timeout: .seconds(30))
      return response.status == .ok ? response.version : nil
    }
  }
}
