import Foundation

/// An IPv4 or IPv6 address with the length of its network's prefix: PostgreSQL's `inet`. It also reads `cidr`.
public struct Inet: Hashable, Sendable {
  /// Four bytes of an IPv4 address, or sixteen of an IPv6 address.
  public let address: [UInt8]
  /// The number of bits that name the network: at most 32 or 128, which means a single host.
  public let prefixLength: Int

  /// - Parameters:
  ///   - address: four or sixteen bytes.
  ///   - prefixLength: nil for a single host.
  /// - Returns: nil if there are more or fewer bytes, or fewer bits than the prefix has.
  public init?(address: [UInt8], prefixLength: Int? = nil) {
    let bits = address.count * 8
    guard [4, 16].contains(address.count), (0...bits).contains(prefixLength ?? bits) else { return nil }
    self.address = address
    self.prefixLength = prefixLength ?? bits
  }

  /// Whether it is an IPv6 address.
  public var isIPv6: Bool { address.count == 16 }
}

extension Inet: LosslessStringConvertible {
  /// Such as `192.0.2.1`, `192.0.2.0/24` or `2001:db8::1`.
  public var description: String {
    var text = Array(repeating: 0 as CChar, count: Int(INET6_ADDRSTRLEN))
    inet_ntop(isIPv6 ? AF_INET6 : AF_INET, address, &text, socklen_t(text.count))
    let host = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return prefixLength == address.count * 8 ? host : "\(host)/\(prefixLength)"
  }

  /// - Parameter text: as ``description``; an IPv4 address has all four numbers.
  public init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard (1...2).contains(parts.count), !text.utf8.contains(0) else { return nil }
    let host = String(parts[0])
    var address = Array(repeating: 0 as UInt8, count: host.contains(":") ? 16 : 4)
    guard inet_pton(address.count == 16 ? AF_INET6 : AF_INET, host, &address) == 1 else { return nil }
    guard parts.count == 2 else {
      self.init(address: address)
      return
    }
    guard parts[1].utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), let length = Int(parts[1])
    else { return nil }
    self.init(address: address, prefixLength: length)
  }
}

extension Inet: SQLValue {
  /// The families in PostgreSQL's format, on every system.
  private static let families: (ipv4: UInt8, ipv6: UInt8) = (2, 3)

  public static var sqlType: SQLType { .inet }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    bytes.append(isIPv6 ? Self.families.ipv6 : Self.families.ipv4)
    bytes.append(UInt8(clamping: prefixLength))
    bytes.append(0)  // not a cidr
    bytes.append(UInt8(clamping: address.count))
    bytes += address
    return .bytes
  }

  public init(cell: SQLCell) throws {
    let bytes = try cell.bytes(of: .inet, .cidr)
    guard bytes.count >= 4, bytes.count == 4 + Int(bytes[3]),
      let value = Inet(address: Array(bytes[4...]), prefixLength: Int(bytes[1])),
      bytes[0] == (value.isIPv6 ? Self.families.ipv6 : Self.families.ipv4)
    else { throw CellMismatch.malformed }
    self = value
  }
}

extension Inet: Codable {
  public init(from decoder: any Decoder) throws { self = try decoder.text(Inet.init) }
  public func encode(to encoder: any Encoder) throws { try encoder.encode(description) }
}
