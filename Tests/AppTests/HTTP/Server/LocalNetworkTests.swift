import HTTPServer
import Testing

@testable import App

@Suite struct LocalNetworkTests {
  private func address(_ interfaces: (String, String)...) throws -> String? {
    try LocalNetwork.firstAddress(among: interfaces.map { (name: $0, address: try #require(IPAddress($1))) })
  }

  @Test func `phones get the first private address that is not a bridge to containers`() throws {
    #expect(try address(("lo", "127.0.0.1"), ("en0", "192.168.1.5"), ("en1", "10.0.0.7")) == "192.168.1.5")
    #expect(
      try address(("docker0", "172.17.0.1"), ("br-4f2a", "172.18.0.1"), ("wlan0", "172.31.255.254")) == "172.31.255.254"
    )
    #expect(try address(("bridge100", "192.168.64.1"), ("en0", "10.1.2.3")) == "10.1.2.3")
    // Not private: public, link-local, and beyond 172.16.0.0/12.
    #expect(try address(("eth0", "203.0.113.5"), ("eth1", "169.254.1.1"), ("eth2", "172.32.0.1")) == nil)
    #expect(try address() == nil)
  }

  @Test func `the address of this machine is private, if there is one`() throws {
    guard let found = LocalNetwork.address else { return }
    let address = try #require(IPAddress(found))
    #expect(address.isIPv4 && !address.isPublic && !LocalNetwork.isLoopback(found))
  }

  @Test func `only loopback addresses keep other machines out`() {
    for host in ["127.0.0.1", "127.1.2.3", "localhost", "::1"] { #expect(LocalNetwork.isLoopback(host), "\(host)") }
    for host in ["0.0.0.0", "::", "192.168.1.5", "fe80::1", "example.com"] {
      #expect(!LocalNetwork.isLoopback(host), "\(host)")
    }
  }
}
