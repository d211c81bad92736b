import Foundation
import HTTPServer

/// The network that this machine shares with phones.
public enum LocalNetwork {
  private static let blocks = AddressBlocks("10.0.0.0/8,172.16.0.0/12,192.168.0.0/16")
  /// The names of bridges to containers and virtual machines begin with these. Phones cannot reach them.
  private static let bridges = ["docker", "br-", "bridge", "veth", "virbr", "vmnet", "vboxnet", "lxc", "cni"]

  /// The first IPv4 address of this machine in a private network.
  public static var address: String? { firstAddress(among: interfaces()) }

  /// Whether only this machine reaches a service that listens on `host`.
  public static func isLoopback(_ host: String) -> Bool {
    host == "localhost" || host == "::1" || host == "[::1]" || (host.hasPrefix("127.") && IPAddress(host) != nil)
  }

  static func firstAddress(among interfaces: [(name: String, address: IPAddress)]) -> String? {
    interfaces.first { name, address in
      blocks?.contains(address) == true && !bridges.contains { name.hasPrefix($0) }
    }?.address.description
  }

  /// The interfaces that are up, with their IPv4 addresses, without tunnels.
  private static func interfaces() -> [(name: String, address: IPAddress)] {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0 else { return [] }
    defer { freeifaddrs(list) }
    var interfaces: [(name: String, address: IPAddress)] = []
    var next = list
    while let entry = next?.pointee {
      next = entry.ifa_next
      let flags = Int(entry.ifa_flags)
      guard flags & Int(IFF_UP) != 0, flags & Int(IFF_POINTOPOINT) == 0, let address = entry.ifa_addr,
        address.pointee.sa_family == sa_family_t(AF_INET)
      else { continue }
      let bits = address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
        UInt32(bigEndian: $0.pointee.sin_addr.s_addr)
      }
      interfaces.append((String(cString: entry.ifa_name), IPAddress(bits: 0xffff << 32 | UInt128(bits))))
    }
    return interfaces
  }
}
