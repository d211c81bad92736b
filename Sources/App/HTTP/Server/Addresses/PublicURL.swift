import Foundation
import Synchronization

/// The base URL of this service for clients: `MUSTER_PUBLIC_URL`, or else the address on which it listens. The database
/// stores paths relative to it, so that the URL can change.
public final class PublicURL: Sendable {
  /// The base URL during a request. Values that write themselves into responses, such as a user in a list, have no
  /// other access to it.
  @TaskLocal static var base: String = ""

  private let known: Mutex<String>
  private let isConfigured: Bool

  init(_ configured: String?) {
    known = Mutex(configured ?? "")
    isConfigured = configured != nil
  }

  var text: String { known.withLock { $0 } }

  /// Uses the listening address if no URL is configured.
  func listens(on host: String, port: Int, isSecure: Bool = false) {
    guard !isConfigured else { return }
    known.withLock { $0 = Self.of(Self.isEverywhere(host) ? "localhost" : host, port: port, isSecure: isSecure) }
  }

  /// The URL of a service on a host, which may be an IPv6 address.
  public static func of(_ host: String, port: Int, isSecure: Bool) -> String {
    "\(isSecure ? "https" : "http")://\(host.contains(":") ? "[\(host)]" : host):\(port)"
  }

  /// Whether a service that listens on `host` listens on all addresses of the machine.
  public static func isEverywhere(_ host: String) -> Bool {
    host == "0.0.0.0" || host == "::"
  }

  /// Makes a path of this service an absolute URL. URLs of other services stay as they are.
  static func absolute(_ url: String?) -> String? {
    url.map { $0.hasPrefix("/") ? base + $0 : $0 }
  }

  /// Removes slashes at the end.
  ///
  /// - Returns: nil if the text is not an http or https URL to which a path can be appended.
  static func normalized(_ text: String) -> String? {
    guard let url = URL(string: text), url.scheme == "https" || url.scheme == "http", url.host()?.isEmpty == false,
      url.query() == nil, url.fragment() == nil, url.user() == nil, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
    else { return nil }
    var text = text
    while text.hasSuffix("/") { text.removeLast() }
    return text
  }
}
