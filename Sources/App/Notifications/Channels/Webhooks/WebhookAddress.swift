import Foundation
import HTTPServer

/// A webhook's URL, checked as far as possible without DNS. Only URLs that pass are handed to the HTTP client, which
/// traps on some others.
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

  /// Nil for any other host, which two URL parsers might read differently.
  private static func plain(_ host: String) -> String? {
    if host.wholeMatch(of: /[A-Za-z0-9._-]{1,253}/) != nil { return host }
    guard let match = host.wholeMatch(of: /\[?([0-9A-Fa-f:.]{2,45})\]?/), IPAddress(match.output.1) != nil else {
      return nil
    }
    return String(match.output.1)
  }

  /// The host and port, as one string.
  static func authority(of text: String) -> String? {
    WebhookAddress(text).map { "\($0.host.lowercased()):\($0.port)" }
  }

  /// Why a URL cannot be registered; nil if it can. A name that resolves to a private address is only detected when
  /// something is sent to it.
  ///
  /// - Parameter allowsPrivate: also accepts plain http and private addresses.
  static func objection(to text: String, allowsPrivate: Bool) -> String? {
    guard let address = WebhookAddress(text), address.isSecure || allowsPrivate else {
      return """
        must be \(allowsPrivate ? "an https or http URL" : "an https URL") with a host, without user, password and \
        fragment; a port must be from 1 to 65535
        """
    }
    return allowsPrivate || !isPrivate(address.host) ? nil : "must not point to a private address"
  }

  /// Whether a host looks like this machine or one in its network.
  private static func isPrivate(_ host: String) -> Bool {
    let name = host.lowercased().trimmingCharacters(in: CharacterSet(charactersIn: "."))
    if let address = IPAddress(name) { return !address.isPublic }
    let last = name.split(separator: ".").last ?? ""
    // Systems also read 127.1, 2130706433 and 0x7f000001 as addresses. No public name ends like this.
    return name == "localhost" || last == "localhost" || last.allSatisfy(\.isNumber) || last.hasPrefix("0x")
      || name.contains(":")
  }
}
