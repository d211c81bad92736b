import Foundation
import Logging
import NIOCore
import NIOHTTP2
import NIOSSL
import Synchronization

/// The server's certificate and key. The files are read again when they change; connections that are already open keep
/// what they began with.
public final class ServerCertificate: Sendable {
  /// The reason why the files cannot be used.
  public struct Problem: Error, CustomStringConvertible {
    public let description: String
  }

  /// The operator's names of the settings that have the paths of the files.
  public struct Names: Sendable {
    let certificate: String
    let key: String

    public init(certificate: String, key: String) {
      (self.certificate, self.key) = (certificate, key)
    }
  }

  private struct State {
    var context: NIOSSLContext
    /// The last content of the files, usable or not.
    var pair: Pair
  }

  /// The contents of the two files; nil for one that cannot be read.
  private struct Pair: Equatable {
    let certificate: Data?
    let key: Data?
  }

  /// How long a client has to confirm the end of a connection.
  private static let shutdownTimeout = TimeAmount.milliseconds(500)

  /// For TLS 1.2: only suites with forward secrecy and authenticated encryption (RFC 9325, section 4.2), so that a key
  /// that leaks later opens no recorded connection. TLS 1.3 has no others.
  private static let suites: [NIOTLSCipher] = [
    .TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    .TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, .TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    .TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, .TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
  ]

  private let certificateFile: String
  private let keyFile: String
  private let names: Names
  private let state: Mutex<State>

  /// - Throws: ``Problem`` unless the files hold a certificate chain and its key.
  public init(certificateFile: String, keyFile: String, names: Names) throws(Problem) {
    (self.certificateFile, self.keyFile, self.names) = (certificateFile, keyFile, names)
    let pair = Self.read(certificateFile, keyFile)
    state = Mutex(State(context: try Self.context(of: pair, names), pair: pair))
  }

  /// The settings for a new connection.
  var context: NIOSSLContext { state.withLock { $0.context } }

  /// Checks the files until it is cancelled.
  public func run(every seconds: Double, logger: Logger) async {
    while !Task.isCancelled {
      // Throws only on cancellation, which ends the loop.
      try? await Task.sleep(for: .seconds(seconds))
      reload(logger: logger)
    }
  }

  /// Reads the files, and uses them for new connections if they have changed. If they cannot be used, such as halfway
  /// through a replacement, this is logged once and the previous certificate stays.
  public func reload(logger: Logger) {
    // Under one lock: of two concurrent reloads, the later one must not be undone.
    state.withLock { state in
      let pair = Self.read(certificateFile, keyFile)
      guard state.pair != pair else { return }
      state.pair = pair
      do throws(Problem) {
        state.context = try Self.context(of: pair, names)
        logger.notice("the certificate was reloaded")
      } catch {
        logger.error(
          "the new certificate cannot be used, so the previous one stays", metadata: ["error": "\(error)"])
      }
    }
  }

  private static func read(_ certificateFile: String, _ keyFile: String) -> Pair {
    Pair(
      certificate: FileManager.default.contents(atPath: certificateFile),
      key: FileManager.default.contents(atPath: keyFile))
  }

  private static func context(of pair: Pair, _ names: Names) throws(Problem) -> NIOSSLContext {
    guard let chain = pair.certificate.flatMap({ try? NIOSSLCertificate.fromPEMBytes(Array($0)) }), !chain.isEmpty
    else { throw Problem(description: "\(names.certificate) must be the path of a PEM file of certificates") }
    guard let secret = pair.key.flatMap({ try? NIOSSLPrivateKey(bytes: Array($0), format: .pem) }) else {
      throw Problem(
        description: "\(names.key) must be the path of a PEM file of a private key without a passphrase")
    }
    var tls = TLSConfiguration.makeServerConfiguration(
      certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(secret))
    tls.minimumTLSVersion = .tlsv12
    tls.cipherSuiteValues = suites
    tls.applicationProtocols = NIOHTTP2SupportedALPNProtocols
    tls.shutdownTimeout = shutdownTimeout
    guard let context = try? NIOSSLContext(configuration: tls) else {
      throw Problem(description: "\(names.key) is not the key of the first certificate in \(names.certificate)")
    }
    return context
  }
}
