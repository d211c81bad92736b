import NIOCore
import HTTPTypes

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
