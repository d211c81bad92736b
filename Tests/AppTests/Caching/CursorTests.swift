import Foundation
import Postgres
import TestSupport
import Testing
@testable import App

@Suite struct CursorTests {
  @Test(arguments: [1, 2] as [UInt64])
  func `a cursor survives a round trip`(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    for number in 0..<1000 {
      let stamp = Timestamp(microseconds: .random(in: 0...253_402_300_799_999_999, using: &random))
      let cursor = Cursor(
        list: number % 2 == 0 ? .friends : .invitationsByStatus, stamp: number % 3 == 0 ? nil : stamp,
        time: Timestamp(microseconds: .random(in: -1_000_000...253_402_300_799_999_999, using: &random)), id: UUID())
      #expect(Cursor(cursor.text) == cursor)
      // A query needs no escaping for it.
      #expect(cursor.text.wholeMatch(of: /[A-Za-z0-9_-]+/) != nil)
    }
  }

  @Test func `truncated, extended and malformed cursors are refused`() {
    let text = Cursor(list: .events, stamp: .now(), time: .now(), id: UUID()).text
    for length in 0..<text.count { #expect(Cursor(String(text.prefix(length))) == nil, "\(length) of \(text)") }
    for bad in [
      text + "A", text + text, "garbage", "0", "=", "====", "null", "é", "\u{0}", " " + text, text + "\n", "%00",
    ] {
      #expect(Cursor(bad) == nil, "\(bad)")
    }
  }

  @Test func `a made-up cursor is refused unless its times can be expressed and its list is known`() {
    func cursor(_ stamp: Int64, _ time: Int64, list: UInt8 = ListName.events.rawValue) -> Cursor? {
      var bytes = Data([list])
      for number in [stamp, time] { withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) } }
      bytes.append(contentsOf: [UInt8](repeating: 0, count: 16))
      return Cursor(bytes.base64URL)
    }
    let (first, last): (Int64, Int64) = (-62_135_596_800_000_000, 253_402_300_799_999_999)
    for good in [first, -1, 0, last] { #expect(cursor(good, good) != nil) }
    #expect(cursor(.min, 0).map { $0.stamp == nil } == true)
    // RFC 3339 can express none of these, and PostgreSQL not all of them.
    for bad in [Int64.min, .min + 1, first - 1, last + 1, .max] {
      #expect(cursor(0, bad) == nil)
      if bad != .min { #expect(cursor(bad, 0) == nil) }
    }
    for list: UInt8 in [0, 100, 255] { #expect(cursor(0, 0, list: list) == nil) }
  }

  @Test func `random text is not a cursor, and breaks nothing`() {
    var random = SeededRandom(seed: 7)
    for _ in 0..<5000 {
      let length = Int.random(in: 0...60, using: &random)
      let bytes = (0..<length).map { _ in UInt8.random(in: 0x20...0x7e, using: &random) }
      guard let cursor = Cursor(String(decoding: bytes, as: UTF8.self)) else { continue }
      #expect(Cursor(cursor.text) == cursor)
    }
  }
}
