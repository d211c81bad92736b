import Foundation

/// A webhook's URL, as far as it can be checked without a name server. Nothing else is handed to the HTTP client, which
/// traps on some URLs.
struct WebhookAddress: Sendable {
  static let maximumLength = 1024

  /// A name, or an address without brackets.
  let host: String
  let port: Int
  let isSecure: Bool

  /// Nil unless it is an http or https URL of printable ASCII with a plain host, without user, password and fragment.
  init?(_ text: String) {
    guard text.utf8.count <= Self.maximumLength, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }),
      let url = URL(string: text), url.user() == nil, url.password() == nil, url.fragment() == nil,
      let name = url.host(), let host = Self.plain(name)
    else { return nil }
    switch url.scheme?.lowercased() {
    case "https": isSecure = true
    case "http": isSecure = false
    default: return nil
    }
    let port = url.port ?? (isSecure ? 443 : 80)
    guard (1...65_535).contains(port) else { return nil }
    (self.host, self.port) = (host, port)
  }

  /// Two readers might take any other host for two different ones.
  private static func plain(_ host: String) -> String? {
    if host.wholeMatch(of: /[A-Za-z0-9._-]{1,253}/) != nil { return host }
    guard let match = host.wholeMatch(of: /\[?([0-9A-Fa-f:.]{2,45})\]?/), IPAddress(match.output.1) != nil else {
      return nil
    }
    return String(match.output.1)
  }

  /// Host and port, as one name.
  static func authority(of text: String) -> String? {
    WebhookAddress(text).map { "\($0.host.lowercased()):\($0.port)" }
  }

  /// What speaks against a URL; nil if nothing does. Names that lead to private addresses are found out when something is
  /// sent there.
  ///
  /// - Parameter allowsPrivate: takes plain http and private addresses, too.
  static func objection(to text: String, allowsPrivate: Bool) -> String? {
    guard let address = WebhookAddress(text), address.isSecure || allowsPrivate else {
      return """
        must be \(allowsPrivate ? "an https or http URL" : "an https URL") with a host, without user, password and \
        fragment, and with a port from 1 to 65535 if it names one
        """
    }
    return allowsPrivate || !isPrivate(address.host) ? nil : "must not lead to a private address"
  }

  /// Whether a host looks like one of this machine or its network.
  private static func isPrivate(_ host: String) -> Bool {
    let name = host.lowercased().trimmingCharacters(in: CharacterSet(charactersIn: "."))
    if let address = IPAddress(name) { return !address.isPublic }
    let last = name.split(separator: ".").last ?? ""
    // Systems read 127.1, 2130706433 and 0x7f000001 as addresses, too. No name of the Internet ends so.
    return name == "localhost" || last == "localhost" || last.allSatisfy(\.isNumber) || last.hasPrefix("0x")
      || name.contains(":")
  }
}
