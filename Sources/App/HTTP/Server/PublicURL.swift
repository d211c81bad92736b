import Foundation
import Synchronization

/// Where clients find this service: what `MUSTER_PUBLIC_URL` says, or else where it listens. The database has paths that
/// are relative to it, so that a service can move.
final class PublicURL: Sendable {
  /// While a request is answered, its service's. What is written into answers, such as a person in a list, has no other
  /// way to it.
  @TaskLocal static var base: String = ""

  private let known: Mutex<String>
  private let isConfigured: Bool

  init(_ configured: String?) {
    known = Mutex(configured ?? "")
    isConfigured = configured != nil
  }

  var text: String { known.withLock { $0 } }

  /// The address that is listened on serves until a better one is configured.
  func listens(on host: String, port: Int) {
    guard !isConfigured else { return }
    let isEverywhere = host == "0.0.0.0" || host == "::"
    let name = isEverywhere ? "localhost" : host.contains(":") ? "[\(host)]" : host
    known.withLock { $0 = "http://\(name):\(port)" }
  }

  /// A URL as clients need it, of a path of ours or a URL of elsewhere.
  static func absolute(_ url: String?) -> String? {
    url.map { $0.hasPrefix("/") ? base + $0 : $0 }
  }

  /// Without a slash at its end.
  ///
  /// - Returns: nil if the text is no http or https URL that a path can be appended to.
  static func normalized(_ text: String) -> String? {
    guard let url = URL(string: text), url.scheme == "https" || url.scheme == "http", url.host()?.isEmpty == false,
      url.query() == nil, url.fragment() == nil, url.user() == nil, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
    else { return nil }
    var text = text
    while text.hasSuffix("/") { text.removeLast() }
    return text
  }
}
