import Foundation

/// An IPv4 or IPv6 address. IPv4 addresses are stored as IPv6 addresses in ::ffff:0:0/96, as dual-stack sockets report
/// them.
public struct IPAddress: Hashable, Sendable, CustomStringConvertible {
  public let bits: UInt128

  public init(bits: UInt128) {
    self.bits = bits
  }

  /// Nil if the text is not an address. A port, a zone or white space is not allowed.
  public init?(_ text: some StringProtocol) {
    guard text.utf8.count <= 45, text.utf8.allSatisfy({ Self.digits.contains($0) }) else { return nil }
    let text = String(text)
    var bytes = [UInt8](repeating: 0, count: 16)
    if inet_pton(AF_INET, text, &bytes) == 1 {
      bits = bytes.prefix(4).reduce(0xffff as UInt128) { $0 * 256 + UInt128($1) }
    } else if inet_pton(AF_INET6, text, &bytes) == 1 {
      bits = bytes.reduce(0 as UInt128) { $0 * 256 + UInt128($1) }
    } else {
      return nil
    }
  }

  private static let digits = Set("0123456789abcdefABCDEF:.".utf8)

  /// Parses an address as proxies write it. Some add the port, and then put brackets around an IPv6 address.
  public init?(forwarded text: some StringProtocol) {
    var address = text.trimmingCharacters(in: .whitespaces)[...]
    var port = Substring()
    if address.first == "[" {
      guard let end = address.firstIndex(of: "]") else { return nil }
      port = address[end...].dropFirst()
      address = address[..<end].dropFirst()
    } else if let colon = address.firstIndex(of: ":"), colon == address.lastIndex(of: ":") {
      port = address[colon...]
      address = address[..<colon]
    }
    guard port.isEmpty || port.first == ":" && UInt16(port.dropFirst()) != nil else { return nil }
    self.init(address)
  }

  public var isIPv4: Bool { bits >> 32 == 0xffff }

  public var description: String {
    if isIPv4 {
      return stride(from: 24, through: 0, by: -8).map { String(UInt8(truncatingIfNeeded: bits >> $0)) }
        .joined(separator: ".")
    }
    return stride(from: 112, through: 0, by: -16).map { String(UInt16(truncatingIfNeeded: bits >> $0), radix: 16) }
      .joined(separator: ":")
  }

  /// The network that one Internet subscriber usually has: an IPv4 address, or a whole IPv6 /64.
  public var network: String {
    isIPv4 ? description : IPAddress(bits: (bits >> 64) << 64).description + "/64"
  }
}
