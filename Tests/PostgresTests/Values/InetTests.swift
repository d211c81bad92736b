import Testing

@testable import Postgres

/// Addresses and networks.
@Suite(.timeLimit(.minutes(15)))
struct InetTests {
  @Test(arguments: [
    "192.0.2.1", "0.0.0.0", "255.255.255.255", "10.1.2.3/8", "192.0.2.0/24", "0.0.0.0/0", "::", "::1", "2001:db8::1",
    "2001:db8::/32", "::/0", "fe80::1:2:3:4/64", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::ffff:192.0.2.1",
  ])
  func `the server and Swift agree on every address`(text: String) async throws {
    try await withDatabase { database, _ in
      let inet = try #require(Inet(text))
      #expect(inet.description == text)
      let row = try #require(
        try await database.first(
          "SELECT \(inet), \(text)::inet, \(inet) = \(text)::inet, \([inet, inet]), network(\(inet)), \(nil as Inet?)"))
      #expect(try row[0] == inet)
      #expect(try row[1] == inet)
      #expect(try row[2] == true)
      #expect(try row[3] == [inet, inet])
      #expect((try row[4] as Inet).prefixLength == inet.prefixLength, "a cidr is also read")
      #expect(try row[5] as Inet? == nil)
    }
  }

  @Test(arguments: [
    "", "/", "1.2.3", "1.2.3.4.5", "256.0.0.1", "1.2.3.4/33", "1.2.3.4/-1", "1.2.3.4/", "1.2.3.4/+8", "1.2.3.4/8/8",
    ":::",
    "::1/129", "fe80::1%eth0", "1.2.3.4\0", "example.org", "::g",
  ])
  func `a text that is not an address is rejected`(text: String) {
    #expect(Inet(text) == nil)
  }

  @Test func `bytes that are not an address are an error`() {
    #expect(Inet(address: [1, 2, 3]) == nil)
    #expect(Inet(address: [1, 2, 3, 4], prefixLength: 33) == nil)
    #expect(Inet(address: [1, 2, 3, 4])?.isIPv6 == false)
    let bad: [[UInt8]] = [
      [], [2, 32, 0], [2, 32, 0, 4, 1, 2, 3], [3, 32, 0, 4, 1, 2, 3, 4], [2, 33, 0, 4, 1, 2, 3, 4], [2, 0, 0, 0],
      [2, 32, 0, 255, 1, 2, 3, 4],
    ]
    for bytes in bad {
      bytes.withUnsafeBytes { bytes in
        _ = #expect(throws: CellMismatch.malformed) { try Inet(cell: SQLCell(type: SQLType.inet.oid, bytes: bytes)) }
      }
    }
  }
}
