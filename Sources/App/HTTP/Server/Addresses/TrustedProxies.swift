import NIOCore
import HTTPTypes

/// The proxies whose `X-Forwarded-For` is trusted: `MUSTER_TRUSTED_PROXIES`.
public struct TrustedProxies: Sendable {
  private let blocks: AddressBlocks

  /// No proxies.
  init() {
    blocks = AddressBlocks()
  }

  /// Comma-separated addresses and CIDR blocks; nil if one of them is neither.
  init?(_ text: String) {
    guard let blocks = AddressBlocks(text) else { return nil }
    self.blocks = blocks
  }

  var isEmpty: Bool { blocks.isEmpty }

  func contains(_ address: IPAddress) -> Bool { blocks.contains(address) }

  /// The client whose request a peer has forwarded.
  ///
  /// Each proxy appends the address that connected to it. The last entry is true if the peer is a trusted proxy, the
  /// entry before it is true if the last one is also a trusted proxy, and so on. The first address from the right that
  /// is not a trusted proxy is the client. Everything to the left of it, or of an entry that is not an address, is
  /// ignored.
  ///
  /// - Parameter forwardedFor: the lines of `X-Forwarded-For`, which form one list.
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
  /// The client's address: the peer of the connection, or the address that trusted proxies report.
  var address: String {
    // A closed connection has no address.
    guard let peer = channel?.remoteAddress?.ipAddress, let address = IPAddress(peer) else { return "unknown" }
    return trustedProxies.client(behind: address, forwardedFor: forwardedFor).description
  }
}

extension HTTPField.Name {
  static let xForwardedFor = HTTPField.Name("X-Forwarded-For")!
}
