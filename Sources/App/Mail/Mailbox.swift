/// The mailbox behind an e-mail address, for counting mails and for opt-outs. It is never an identity: spellings that
/// reach one mailbox, such as tags, may belong to several accounts.
struct Mailbox: Sendable, Hashable {
  /// Without case and tags, and without dots where the provider ignores them.
  let text: String
  /// The part of the domain that one owner registers: any number of names below it are free.
  let domain: String
  /// Whether many unrelated people have mailboxes at the domain. A limit for it would let few strangers stop the mails of
  /// all of them.
  let isAtProvider: Bool

  /// Providers that ignore dots in a name, and the domain that stands for all of theirs.
  private static let dotless = [
    "gmail.com": "gmail.com", "googlemail.com": "gmail.com", "proton.me": "proton.me", "protonmail.com": "proton.me",
    "protonmail.ch": "proton.me", "pm.me": "proton.me",
  ]
  /// Providers whose tags begin with a hyphen.
  private static let hyphenTagged: Set = ["yahoo.com", "ymail.com", "rocketmail.com"]
  /// Other large providers.
  private static let providers: Set = [
    "aol.com", "gmx.at", "gmx.ch", "gmx.de", "gmx.net", "hotmail.com", "icloud.com", "live.com", "mac.com", "mail.ru",
    "me.com", "msn.com", "outlook.com", "qq.com", "t-online.de", "web.de", "yandex.ru", "163.com", "126.com",
  ]
  /// Second labels below which others register names, as in `example.co.uk`.
  private static let registries: Set = ["ac", "co", "com", "edu", "go", "gob", "gov", "ne", "net", "or", "org"]

  init(_ address: EmailAddress) {
    self.init(address.key)
  }

  /// - Parameter text: of an address that was parsed before.
  init(_ text: String) {
    let address = text.lowercased()
    let at = address.lastIndex(of: "@") ?? address.endIndex
    let host = String(address[at...].dropFirst())
    let provider = Self.dotless[host]
    var name = address[..<at]
    func cut(at sign: Character) {
      // An address whose name is only a tag has no other name.
      if let end = name.firstIndex(of: sign), end > name.startIndex { name = name[..<end] }
    }
    cut(at: "+")
    if Self.hyphenTagged.contains(host) { cut(at: "-") }
    let plain = provider == nil ? String(name) : String(name.filter { $0 != "." })
    self.text = "\(plain)@\(provider ?? host)"
    domain = Self.registered(provider ?? host)
    isAtProvider = provider != nil || Self.hyphenTagged.contains(host) || Self.providers.contains(host)
  }

  /// Nearly always right without the Public Suffix List. If not, a few unrelated domains share a limit.
  private static func registered(_ host: String) -> String {
    let labels = host.split(separator: ".", omittingEmptySubsequences: false)
    guard labels.count > 2 else { return host }
    let isRegistry = labels[labels.count - 1].count == 2 && registries.contains(String(labels[labels.count - 2]))
    return labels.suffix(isRegistry ? 3 : 2).joined(separator: ".")
  }
}
