import Crypto
import Foundation
import TestSupport
import Testing

@testable import App

@Suite struct ItemDigestsTests {
  @Test func `a digest is the beginning of a keyed hash, in base64url`() throws {
    let keys = try SigningKeys(SigningKeys.generate())
    let digests = ItemDigests(keys: keys)
    let key = try #require(keys.derived(kid: keys.signing.kid, label: "muster item digests"))
    var random = SeededRandom(seed: 18)
    for length in 0..<300 {
      let json = (0..<length).map { _ in UInt8.random(in: .min ... .max, using: &random) }
      let code = Data(HMAC<SHA256>.authenticationCode(for: json, using: key))
      let digest = digests.digest(of: json)
      #expect(digest == code.prefix(8).base64URL)
      #expect(digest.utf8.count == 11)
      // A slice has the same digest as its bytes.
      #expect(digests.digest(of: ([7] + json + [7])[1..<length + 1]) == digest)
    }
  }

  @Test func `only the first key counts, and another key makes other digests`() throws {
    let (first, second) = (SigningKeys.generate(), SigningKeys.generate())
    func digest(_ keys: String) throws -> String {
      ItemDigests(keys: try SigningKeys(keys)).digest(of: Array("{}".utf8))
    }
    #expect(try digest(first) == digest("\(first),\(second)"))
    #expect(try digest(first) != digest("\(second),\(first)"))
  }
}
