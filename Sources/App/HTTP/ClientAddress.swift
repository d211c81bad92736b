import Foundation
import HTTPTypes
import NIOCore

/// An IPv4 or IPv6 address. The former are held as the latter, in ::ffff:0:0/96, where sockets that serve both put them.
struct IPAddress: Hashable, Sendable, CustomStringConvertible {
  let bits: UInt128

  init(bits: UInt128) {
    self.bits = bits
  }

  /// Nil for anything but an address: no port, zone or white space.
  init?(_ text: some StringProtocol) {
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

  /// As proxies write it: some add the port, and then put brackets around an IPv6 address.
  init?(forwarded text: some StringProtocol) {
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

  var isIPv4: Bool { bits >> 32 == 0xffff }

  var description: String {
    if isIPv4 {
      return stride(from: 24, through: 0, by: -8).map { String(UInt8(truncatingIfNeeded: bits >> $0)) }
        .joined(separator: ".")
    }
    return stride(from: 112, through: 0, by: -16).map { String(UInt16(truncatingIfNeeded: bits >> $0), radix: 16) }
      .joined(separator: ":")
  }

  /// What one subscriber has of the Internet: an IPv4 address, or all of an IPv6 /64.
  var network: String {
    isIPv4 ? description : IPAddress(bits: (bits >> 64) << 64).description + "/64"
  }
}

/// A set of addresses, made of blocks.
struct AddressBlocks: Sendable {
  private struct Block: Sendable {
    let address: IPAddress
    /// Leading bits that count, of 128.
    let length: Int
  }

  private let blocks: [Block]

  /// None.
  init() {
    blocks = []
  }

  /// Addresses and CIDR blocks with commas between; nil if one of them is neither.
  init?(_ text: String) {
    var blocks: [Block] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      let pieces = part.trimmingCharacters(in: .whitespaces).split(separator: "/", omittingEmptySubsequences: false)
      guard pieces.count <= 2, let address = IPAddress(pieces[0]) else { return nil }
      let width = address.isIPv4 ? 32 : 128
      var length = width
      if pieces.count == 2 {
        guard pieces[1].first != "+", let given = Int(pieces[1]), (0...width).contains(given) else { return nil }
        length = given
      }
      blocks.append(Block(address: address, length: 128 - width + length))
    }
    self.blocks = blocks
  }

  var isEmpty: Bool { blocks.isEmpty }

  func contains(_ address: IPAddress) -> Bool {
    blocks.contains { ($0.address.bits ^ address.bits) >> (128 - $0.length) == 0 }
  }
}

/// Who is believed when they say for whom they forward a request: `MUSTER_TRUSTED_PROXIES`.
public struct TrustedProxies: Sendable {
  private let blocks: AddressBlocks

  /// Nobody.
  init() {
    blocks = AddressBlocks()
  }

  /// Addresses and CIDR blocks with commas between; nil if one of them is neither.
  init?(_ text: String) {
    guard let blocks = AddressBlocks(text) else { return nil }
    self.blocks = blocks
  }

  var isEmpty: Bool { blocks.isEmpty }

  func contains(_ address: IPAddress) -> Bool { blocks.contains(address) }

  /// Whose request a peer has sent on. Each proxy adds at the right who came to it: what the right-most one adds is true
  /// if it is trusted, what the next one adds is true if that one is trusted too, and so on. What stands left of the
  /// first one that is not, or of anything that is no address, is hearsay.
  ///
  /// - Parameter forwardedFor: the lines of `X-Forwarded-For`, which are one list.
  func client(behind peer: IPAddress, forwardedFor lines: [String]) -> IPAddress {
    var client = peer
    for text in lines.joined(separator: ",").split(separator: ",").reversed() {
      guard contains(client), let next = IPAddress(forwarded: text) else { break }
      client = next
    }
    return client
  }
}

extension Context {
  /// The client's address: the connection's, or what trusted proxies say of it.
  var address: String {
    // Gone once the connection is closed.
    guard let peer = channel.remoteAddress?.ipAddress, let address = IPAddress(peer) else { return "unknown" }
    return trustedProxies.client(behind: address, forwardedFor: forwardedFor).description
  }
}

extension HTTPField.Name {
  static let xForwardedFor = HTTPField.Name("X-Forwarded-For")!
}
