import Foundation
import Testing

@testable import MusterKit

@Suite struct StoredCopyTests {
  private let user = ScriptedServer.ana.id

  private func copy(_ count: Int = 3) throws -> StoredCopy {
    let entries = try (0..<count).map { number in
      let text = "An \"item\" with a tab\t, a line\nand ☕️ \(number)"
      return try #require(
        StoredCopy.Entry(key: "key-\(number)", digest: "digest", item: .object(["id": .string(text)])))
    }
    return StoredCopy(
      collection: .events, stamp: "2026-05-01T09:30:00.123456Z", entries: entries, nextCursor: "next",
      provedAt: Date(timeIntervalSince1970: 1_777_000_000.25))
  }

  @Test(arguments: [0, 1, 3, 700]) func `a copy comes back from its file as it was`(count: Int) throws {
    let copy = try copy(count)
    #expect(StoredCopy(file: try copy.file(of: user), of: .events, user: user) == copy)
  }

  @Test func `a damaged file is not a copy, whichever byte is damaged`() throws {
    let file = try copy().file(of: user)
    for index in file.indices {
      var damaged = file
      damaged[index] ^= 1
      #expect(StoredCopy(file: damaged, of: .events, user: user) == nil, "byte \(index)")
    }
    for length in 0..<file.count { #expect(StoredCopy(file: file.prefix(length), of: .events, user: user) == nil) }
  }

  @Test func `a file of another user or collection is not a copy`() throws {
    let file = try copy().file(of: user)
    #expect(StoredCopy(file: file, of: .events, user: ScriptedServer.ben.id) == nil)
    #expect(StoredCopy(file: file, of: .friends, user: user) == nil)
  }

  @Test func `keys and digests that would break the file are refused`() {
    for word in ["", "a b", "a\tb", "a\n", "é"] {
      #expect(StoredCopy.Entry(key: word, digest: "digest", item: .null) == nil)
      #expect(StoredCopy.Entry(key: "key", digest: word, item: .null) == nil)
    }
  }

  @Test func `an item that this version cannot decode is kept, and hides no other`() throws {
    let good = try JSONValue(encoding: ScriptedServer.event(1))
    let strange = JSONValue.object(["id": .string("x"), "shape": .string("of a later release")])
    let entries = try [("a", good), ("b", strange)].map { key, item in
      try #require(StoredCopy.Entry(key: key, digest: "digest", item: item))
    }
    let copy = StoredCopy(collection: .events, stamp: "s", entries: entries, nextCursor: nil, provedAt: .now)
    var lists = Lists()
    let undecodable = lists.set(.events, to: copy)
    #expect(undecodable?.keys == ["b"])
    #expect(lists.events?.map(\.title) == ["Event 1"])
    let read = try #require(StoredCopy(file: try copy.file(of: user), of: .events, user: user))
    #expect(try JSONDecoder.muster().decode(JSONValue.self, from: read.entries[1].json) == strange)
  }
}
