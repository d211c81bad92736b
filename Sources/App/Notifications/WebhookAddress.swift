import Foundation

/// Where a webhook may be: what can be said of its URL before anybody is asked who its name is.
enum WebhookAddress {
  static let maximumLength = 1024

  /// What speaks against a URL; nil if nothing does. Names that lead to private addresses are found out when something is
  /// sent there.
  ///
  /// - Parameter allowsPrivate: takes plain http and private addresses, too.
  static func objection(to text: String, allowsPrivate: Bool) -> String? {
    guard let url = URL(string: text), let scheme = url.scheme?.lowercased(), let host = url.host(), !host.isEmpty,
      !host.contains("%"),
      scheme == "https" || scheme == "http" && allowsPrivate
    else { return "must be \(allowsPrivate ? "an https or http URL" : "an https URL")" }
    guard url.user() == nil, url.password() == nil, url.fragment() == nil else {
      return "must be a URL without user, password and fragment"
    }
    guard allowsPrivate || !isPrivate(host) else { return "must not lead to a private address" }
    return nil
  }

  /// Whether a host is, by its looks, of this machine or its network.
  private static func isPrivate(_ host: String) -> Bool {
    let name = host.lowercased().trimmingCharacters(in: CharacterSet(charactersIn: "[]."))
    if let address = IPAddress(name) { return !address.isPublic }
    let last = name.split(separator: ".").last ?? ""
    // Systems read 127.1, 2130706433 and 0x7f000001 as addresses, too; and none of the Internet's names ends so.
    return name == "localhost" || last == "localhost" || last.allSatisfy(\.isNumber) || last.hasPrefix("0x")
      || name.contains(":")
  }
}
