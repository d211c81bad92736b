import HTTPServer
/// The networks that a client's address belongs to, for limits: a client with one address of a network may have many.
struct ClientNetworks: Sendable, Hashable {
  /// The widest one: an IPv4 /24 or an IPv6 /48. A client without an address belongs to the network "unknown".
  let network: String
  /// An IPv6 /56, and /64. Nil for IPv4.
  let site: String?
  let subnet: String?

  /// - Parameter address: see ``Context/address``.
  init(_ address: String) {
    guard let address = IPAddress(address) else {
      (network, site, subnet) = ("unknown", nil, nil)
      return
    }
    func block(_ length: Int) -> String {
      "\(IPAddress(bits: (address.bits >> (128 - length)) << (128 - length)))/\(length)"
    }
    network = block(address.isIPv4 ? 120 : 48)
    site = address.isIPv4 ? nil : block(56)
    subnet = address.isIPv4 ? nil : block(64)
  }
}
