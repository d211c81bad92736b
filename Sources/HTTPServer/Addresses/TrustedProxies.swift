import HTTPTypes

/// The proxies whose `X-Forwarded-For` is trusted.
public struct TrustedProxies: Sendable {
  private let blocks: AddressBlocks

  /// No proxies.
  public init() {
    blocks = AddressBlocks()
  }

  /// Comma-separated addresses and CIDR blocks; nil if one of them is neither.
  public init?(_ text: String) {
    guard let blocks = AddressBlocks(text) else { return nil }
    self.blocks = blocks
  }

  public var isEmpty: Bool { blocks.isEmpty }

  public func contains(_ address: IPAddress) -> Bool { blocks.contains(address) }

  /// The client whose request a peer has forwarded.
  ///
  /// Each proxy appends the address that connected to it. The last entry is true if the peer is a trusted proxy, the
  /// entry before it is true if the last one is also a trusted proxy, and so on. The first address from the right that
  /// is not a trusted proxy is the client. Everything to the left of it, or of an entry that is not an address, is
  /// ignored.
  ///
  /// - Parameter forwardedFor: the lines of `X-Forwarded-For`, which form one list.
  public func client(behind peer: IPAddress, forwardedFor lines: [String]) -> IPAddress {
    var client = peer
    for text in lines.joined(separator: ",").split(separator: ",").reversed() {
      guard contains(client), let next = IPAddress(forwarded: text) else { break }
      client = next
    }
    return client
  }
}

extension HTTPField.Name {
  public static let xForwardedFor = HTTPField.Name("X-Forwarded-For")!
}
