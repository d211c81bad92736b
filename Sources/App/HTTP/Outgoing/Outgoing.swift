import AsyncHTTPClient
import NIOCore
import NIOPosix
import NIOSSL

/// The process's client for what it asks of others. It follows no redirects: whoever is asked is configured, and nobody
/// else is to hear of it.
final class Outgoing: Sendable {
  let client: HTTPClient
  private let configuration: HTTPClient.Configuration

  /// - Parameter file: certificates in PEM, trusted besides the system's.
  init(trusting file: String?) throws {
    var tls = TLSConfiguration.makeClientConfiguration()
    if let file {
      guard let certificates = try? NIOSSLCertificate.fromPEMFile(file), !certificates.isEmpty else {
        let name = Variable.trustedCertificates.name
        throw MusterConfiguration.Problem("\(name) must be a file of certificates in PEM, and \"\(file)\" is not")
      }
      tls.additionalTrustRoots = [.certificates(certificates)]
    }
    var configuration = HTTPClient.Configuration()
    configuration.tlsConfiguration = tls
    configuration.redirectConfiguration = .disallow
    // More than all channels together may send to one host: a send that waits for a connection is no failed attempt.
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 4 * Capacity.perHost
    configuration.timeout = HTTPClient.Configuration.Timeout(connect: .seconds(5), read: .seconds(30))
    configuration.http2ConnectionDebugInitializer = { $0.givingUpOnSilence() }
    self.configuration = configuration
    client = HTTPClient(eventLoopGroup: MultiThreadedEventLoopGroup.singleton, configuration: configuration)
  }

  /// Connects to one address for one host, whatever the name may lead to by then. The host is who must prove itself by a
  /// certificate still.
  init(like other: Outgoing, connecting host: String, to address: String) {
    configuration = other.configuration
    var pinned = other.configuration
    pinned.dnsOverride = [host: address]
    client = HTTPClient(eventLoopGroup: MultiThreadedEventLoopGroup.singleton, configuration: pinned)
  }

  func close() async {
    // Its only error is that it was shut down before.
    try? await client.shutdown()
  }

  /// A client that is forgotten without being shut down ends a debug build.
  deinit {
    client.shutdown { _ in }
  }
}

extension Channel {
  /// Many requests share one HTTP/2 connection, and nothing else ends it when the other side is gone without a word: it
  /// is closed when sent bytes are not acknowledged in time.
  fileprivate func givingUpOnSilence() -> EventLoopFuture<Void> {
    #if os(Linux)
      // TCP_USER_TIMEOUT, in milliseconds. A connection does as well without it.
      let option = ChannelOptions.Types.SocketOption(level: .tcp, name: NIOBSDSocket.Option(rawValue: 18))
      return setOption(option, value: 15_000).recover { _ in }
    #else
      return eventLoop.makeSucceededVoidFuture()
    #endif
  }
}
