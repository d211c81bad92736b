import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

/// The HTTP client for outgoing requests. It follows no redirects, because requests must reach only the configured
/// hosts.
final class Outgoing: Sendable {
  let client: HTTPClient
  private let configuration: HTTPClient.Configuration

  /// - Parameter file: certificates in PEM, trusted in addition to the system's.
  init(trusting file: String?) throws {
    var tls = TLSConfiguration.makeClientConfiguration()
    if let file {
      guard let certificates = try? NIOSSLCertificate.fromPEMFile(file), !certificates.isEmpty else {
        let name = Variable.table.trustedCertificates.name
        throw MusterConfiguration.Problem("\(name) must be a PEM file of certificates, but \"\(file)\" is not")
      }
      tls.additionalTrustRoots = [.certificates(certificates)]
    }
    var configuration = HTTPClient.Configuration()
    configuration.tlsConfiguration = tls
    configuration.redirectConfiguration = .disallow
    // More than all channels together may send to one host. Otherwise a delivery could fail because it waits for a
    // connection.
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 4 * Capacity.perHost
    configuration.timeout = HTTPClient.Configuration.Timeout(connect: .seconds(5), read: .seconds(30))
    configuration.http2ConnectionDebugInitializer = { $0.givingUpOnSilence() }
    self.configuration = configuration
    client = HTTPClient(eventLoopGroup: MultiThreadedEventLoopGroup.singleton, configuration: configuration)
  }

  /// Connects to a fixed address for a host, even if its name resolves to another address by then. The certificate must
  /// still match the host.
  init(like other: Outgoing, connecting host: String, to address: String) {
    configuration = other.configuration
    var pinned = other.configuration
    pinned.dnsOverride = [host: address]
    client = HTTPClient(eventLoopGroup: MultiThreadedEventLoopGroup.singleton, configuration: pinned)
  }

  func close() async {
    // Fails only if the client is already shut down.
    try? await client.shutdown()
  }

  /// In a debug build, a client that is released before it is shut down crashes the process.
  deinit {
    client.shutdown { _ in }
  }
}

extension Channel {
  /// Closes the connection if sent bytes are not acknowledged in time. Many requests share one HTTP/2 connection, and
  /// nothing else ends it if the other side disappears silently.
  fileprivate func givingUpOnSilence() -> EventLoopFuture<Void> {
    #if os(Linux)
      // TCP_USER_TIMEOUT, in milliseconds. The connection also works without it.
      let option = ChannelOptions.Types.SocketOption(level: .tcp, name: NIOBSDSocket.Option(rawValue: 18))
      return setOption(option, value: 15_000).recover { _ in }
    #else
      return eventLoop.makeSucceededVoidFuture()
    #endif
  }
}

extension OutgoingResponse {
  /// A provider's error code, for the log; nil for anything but a single word.
  static func word(_ value: JSON?) -> String? {
    guard case .string(let text) = value, text.wholeMatch(of: /[A-Za-z_]{1,60}/) != nil else { return nil }
    return text
  }
}

/// The complete response of another service.
struct OutgoingResponse: Sendable {
  let status: Int
  let headers: HTTPHeaders
  let body: ByteBuffer

  /// Nil if the body is not JSON, or is JSON that ``JSON`` refuses.
  var json: JSON? { try? JSON(parsing: body.readableBytesView) }
}

extension HTTPClient {
  /// Sends a request and reads the complete response.
  ///
  /// - Parameter limit: the time from connecting to the last byte. The client's own deadline ends at the headers.
  /// - Throws: if the request fails, or if the body is longer than `bytes`.
  func response(
    to request: HTTPClientRequest, within limit: Duration, atMost bytes: Int = 64 << 10
  ) async throws -> OutgoingResponse {
    try await withThrowingTaskGroup(of: OutgoingResponse.self) { group in
      group.addTask {
        let response = try await self.execute(request, timeout: TimeAmount(limit))
        return OutgoingResponse(
          status: Int(response.status.code), headers: response.headers,
          body: try await response.body.collect(upTo: bytes))
      }
      group.addTask {
        try await _Concurrency.Task.sleep(for: limit)
        throw HTTPClientError.deadlineExceeded
      }
      defer { group.cancelAll() }
      guard let response = try await group.next() else { throw CancellationError() }
      return response
    }
  }
}
