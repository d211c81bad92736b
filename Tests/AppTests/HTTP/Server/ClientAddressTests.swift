import HTTPServer
import Testing

@testable import App

@Suite struct ClientAddressTests {
  @Test func `an address is read in all its forms`() {
    for (text, printed, network) in [
      ("192.0.2.1", "192.0.2.1", "192.0.2.1"), ("0.0.0.0", "0.0.0.0", "0.0.0.0"),
      ("255.255.255.255", "255.255.255.255", "255.255.255.255"), ("::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1"),
      ("::FFFF:c000:201", "192.0.2.1", "192.0.2.1"), ("::1", "0:0:0:0:0:0:0:1", "0:0:0:0:0:0:0:0/64"),
      ("2001:DB8::a:b", "2001:db8:0:0:0:0:a:b", "2001:db8:0:0:0:0:0:0/64"),
      ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2:0:0:0:0/64"),
    ] {
      #expect(IPAddress(text)?.description == printed, "\(text)")
      #expect(IPAddress(text)?.network == network, "\(text)")
      #expect(IPAddress(printed) == IPAddress(text), "\(text)")
    }
  }

  @Test func `text that is not an address is refused`() {
    let long = String(repeating: "1", count: 100_000)
    for text in [
      "", " ", ".", ":", ":::", "1.2.3", "1.2.3.4.5", "256.1.1.1", "-1.2.3.4", "1.2.3.4 ", " 1.2.3.4", "1.2.3.4/8",
      "1.2.3.4\u{0}", "1.2.3.4\n", "::g", "1:2:3:4:5:6:7:8:9", "::1::", "fe80::1%eth0", "[::1]", "１.2.3.4", "localhost",
      "unknown", long, "1." + long, "::" + long,
    ] {
      #expect(IPAddress(text) == nil, "\(text.prefix(40))")
    }
  }

  @Test func `a proxy may add the port`() {
    for (text, printed) in [
      ("192.0.2.1", "192.0.2.1"), (" 192.0.2.1\t", "192.0.2.1"), ("192.0.2.1:80", "192.0.2.1"),
      ("[2001:db8::1]", "2001:db8:0:0:0:0:0:1"), ("[2001:db8::1]:65535", "2001:db8:0:0:0:0:0:1"),
      ("2001:db8::1", "2001:db8:0:0:0:0:0:1"),
    ] {
      #expect(IPAddress(forwarded: text)?.description == printed, "\(text)")
    }
    for text in [
      "", ":", ":80", "192.0.2.1:", "192.0.2.1:http", "192.0.2.1:65536", "[", "[]", "]", "[2001:db8::1", "[::1]80",
      "[::1]]", "[[::1]]", "for=192.0.2.1", "\"192.0.2.1\"", "_hidden", "unknown",
      String(repeating: "[", count: 10_000),
    ] {
      #expect(IPAddress(forwarded: text) == nil, "\(text.prefix(40))")
    }
  }

  @Test func `proxies are given as addresses and CIDR blocks`() throws {
    let cases: [(text: String, within: [String], without: [String])] = [
      ("192.0.2.1", ["192.0.2.1", "::ffff:192.0.2.1"], ["192.0.2.2", "::1"]),
      ("10.0.0.0/8", ["10.0.0.0", "10.255.255.255"], ["9.255.255.255", "11.0.0.0", "::a00:1"]),
      ("10.1.2.3/8", ["10.255.255.255"], ["11.0.0.0"]), ("192.0.2.128/25", ["192.0.2.255"], ["192.0.2.127"]),
      ("0.0.0.0/0", ["8.8.8.8"], ["::1", "2001:db8::1"]), ("::1", ["::1"], ["::2", "127.0.0.1"]),
      ("2001:db8::/32", ["2001:db8:ffff::1"], ["2001:db9::1"]), ("::/0", ["2001:db8::1"], []),
      (" 192.0.2.1 , 2001:db8::/128 ", ["192.0.2.1", "2001:db8::"], ["2001:db8::1"]),
    ]
    for (text, within, without) in cases {
      let proxies = try #require(TrustedProxies(text), "\(text)")
      for (address, isWithin) in within.map({ ($0, true) }) + without.map({ ($0, false) }) {
        let parsed = try #require(IPAddress(address))
        #expect(proxies.contains(parsed) == isWithin, "\(address) in \(text)")
      }
    }
  }

  @Test func `one invalid element makes a list of proxies invalid`() {
    for text in [
      "", " ", ",", "10.0.0.0/8,", ",10.0.0.0/8", "10.0.0.0/33", "::1/129", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/",
      "10.0.0.0/8/8", "10.0.0.0/0x8", "10.0.0.0/ 8", "10.0.0.0 /8", "/8", "10.0.0.1 10.0.0.2", "10.0.0.1;10.0.0.2",
      "proxy.example.com", "10.0.0.0/99999999999999999999", "10.0.0.*", "*", "on",
    ] {
      #expect(TrustedProxies(text) == nil, "\(text)")
    }
  }

  @Test func `entries of trusted proxies count, up to the first address that is not a trusted proxy`() throws {
    let proxies = try #require(TrustedProxies("10.0.0.0/8, 2001:db8:ffff::/48"))
    let cases: [(peer: String, lines: [String], client: String)] = [
      ("203.0.113.1", ["198.51.100.1"], "203.0.113.1"),
      ("10.0.0.1", [], "10.0.0.1"),
      ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
      ("10.0.0.1", ["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
      ("10.0.0.1", ["1.1.1.1, 198.51.100.1, 10.0.0.2"], "198.51.100.1"),
      ("10.0.0.1", ["1.1.1.1", "198.51.100.1", "10.0.0.2, 2001:db8:ffff::1"], "198.51.100.1"),
      // A client that pretends to be a proxy is still the client of ours.
      ("10.0.0.1", ["10.9.9.9, 198.51.100.1"], "198.51.100.1"),
      ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
      ("10.0.0.1", ["1.1.1.1, nonsense"], "10.0.0.1"),
      ("10.0.0.1", ["1.1.1.1, nonsense, 10.0.0.2"], "10.0.0.2"),
      ("10.0.0.1", [",,", "198.51.100.1,,", ","], "198.51.100.1"),
      ("10.0.0.1", ["", "<script>", "\u{fffd}"], "10.0.0.1"),
      ("10.0.0.1", [String(repeating: "10.0.0.2,", count: 2000)], "10.0.0.2"),
      ("2001:db8:ffff::9", ["2001:db8::7"], "2001:db8:0:0:0:0:0:7"),
      ("::ffff:10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
    ]
    for (peer, lines, client) in cases {
      let address = try #require(IPAddress(peer))
      #expect(proxies.client(behind: address, forwardedFor: lines).description == client, "\(peer) \(lines)")
      // By default, no proxy is trusted.
      #expect(TrustedProxies().client(behind: address, forwardedFor: lines) == address)
    }
  }
}
