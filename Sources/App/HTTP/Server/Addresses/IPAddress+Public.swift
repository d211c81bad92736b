import Foundation
import HTTPServer
import Postgres
import Synchronization

extension IPAddress {
  /// IPv4 addresses outside the public Internet: IANA's special-purpose registry, and multicast.
  private static let special = AddressBlocks(
    """
    0.0.0.0/8,10.0.0.0/8,100.64.0.0/10,127.0.0.0/8,169.254.0.0/16,172.16.0.0/12,192.0.0.0/24,192.0.2.0/24,\
    192.88.99.0/24,192.168.0.0/16,198.18.0.0/15,198.51.100.0/24,203.0.113.0/24,224.0.0.0/4,240.0.0.0/4
    """)
  /// IPv6 global unicast. ``specialGlobal`` has the blocks in it for protocols, such as Teredo, and for documentation.
  private static let global = AddressBlocks("2000::/3")
  private static let specialGlobal = AddressBlocks("2001::/23,2001:db8::/32,3fff::/20")
  private static let nat64 = AddressBlocks("64:ff9b::/96")
  private static let sixToFour = AddressBlocks("2002::/16")

  /// Whether the address belongs to the public Internet. An IPv4 address inside an IPv6 address is judged as IPv4.
  var isPublic: Bool {
    guard let special = Self.special, let global = Self.global, let specialGlobal = Self.specialGlobal,
      let nat64 = Self.nat64, let sixToFour = Self.sixToFour
    else { return false }
    if isIPv4 { return !special.contains(self) }
    if nat64.contains(self) { return IPAddress(ipv4: bits).isPublic }
    if sixToFour.contains(self) { return IPAddress(ipv4: bits >> 80).isPublic }
    return global.contains(self) && !specialGlobal.contains(self)
  }

  /// The IPv4 address in the last 32 bits.
  private init(ipv4 bits: UInt128) {
    self.init(bits: 0xffff << 32 | bits & 0xffff_ffff)
  }

  /// All addresses of a host, in the order in which the system would try them. The user who registers a webhook chooses
  /// the name server that responds, so the lookup has a time limit.
  ///
  /// - Parameter look: looks up the addresses. It may block for as long as the system's resolver does.
  /// - Throws: ``DeliveryFailure``. It is local if too many lookups have not ended yet.
  static func resolving(
    _ host: String, within limit: Duration = .seconds(5), lookups: HostLookups = .shared,
    look: @escaping @Sendable (String) throws -> [IPAddress] = addresses(of:)
  ) async throws -> [IPAddress] {
    let (results, continuation) = AsyncStream.makeStream(of: Result<[IPAddress], any Error>.self)
    guard lookups.begin() else { throw DeliveryFailure.local("too many hosts are being looked up") }
    // On a thread of its own, so that slow name servers delay no other lookup. This task stops waiting at the limit.
    BlockingWork.run {
      let found = Result { try look(host) }
      lookups.end()
      continuation.yield(found)
    }
    let alarm = Task {
      try await Task.sleep(for: limit)
      continuation.finish()
    }
    defer { alarm.cancel() }
    for await found in results { return try found.get() }
    throw DeliveryFailure(description: "the webhook's host cannot be found in time", isTimeout: true)
  }

  static func addresses(of host: String) throws -> [IPAddress] {
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, nil, nil, &list) == 0 else {
      throw DeliveryFailure(description: "the webhook's host cannot be found")
    }
    defer { freeaddrinfo(list) }
    var addresses: [IPAddress] = []
    var next = list
    while let entry = next?.pointee {
      var text = [CChar](repeating: 0, count: 256)
      guard
        getnameinfo(entry.ai_addr, entry.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0,
        let address = IPAddress(String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
      else { throw DeliveryFailure(description: "the webhook's host has an address that is not public") }
      // The list repeats each address for each kind of socket.
      if !addresses.contains(address) { addresses.append(address) }
      next = entry.ai_next
    }
    return addresses
  }
}

/// Counts the lookups of hosts that have not ended. Each has a thread, which may outlive the patience of its caller.
final class HostLookups: Sendable {
  static let shared = HostLookups(limit: 256)

  private let limit: Int
  private let running = Atomic(0)

  init(limit: Int) {
    self.limit = limit
  }

  /// - Returns: false if too many are running.
  func begin() -> Bool {
    if running.add(1, ordering: .relaxed).newValue <= limit { return true }
    end()
    return false
  }

  func end() {
    running.subtract(1, ordering: .relaxed)
  }
}
