import Foundation

/// Where a Muster service is.
struct ServerURL: Equatable, CustomStringConvertible {
  let url: URL

  /// The address of `muster dev`.
  static let development = "http://127.0.0.1:8080"

  /// - Parameter text: such as `https://muster.example`. A host alone gets https; a path to the API is cut off.
  init(_ text: String) throws {
    var address = text.contains("://") ? text : "https://\(text)"
    while address.hasSuffix("/") { address.removeLast() }
    if address.hasSuffix("/api/v1") { address.removeLast("/api/v1".count) }
    guard let parts = URLComponents(string: address), let scheme = parts.scheme?.lowercased(),
      ["http", "https"].contains(scheme), let host = parts.host, !host.isEmpty, parts.user == nil,
      parts.query == nil, parts.fragment == nil
    else { throw Failure.usage("\"\(text)\" is not the URL of a service. Write for example https://muster.example.") }
    var normal = parts
    normal.scheme = scheme
    normal.host = host.lowercased()
    guard let url = normal.url else { throw Failure.usage("\"\(text)\" is not a URL.") }
    self.url = url
  }

  var description: String { url.absoluteString }

  /// A name for files. Different services have different names.
  var fileName: String {
    let allowed = CharacterSet(charactersIn: "abcdefghijklmnopqrstuvwxyz0123456789.-")
    return description.addingPercentEncoding(withAllowedCharacters: allowed) ?? "server"
  }
}
