import Foundation
import Testing

@testable import App

/// Releases must read each other's tokens during a deploy.
@Suite struct TokenValueTests {
  private let id = Session.ID("01900000-0000-7000-8000-0000000000ab")
  private let bytes = "0190000000007000800000000000" + "00ab" + "00000000000001ff" + "fffffffe" + "07"

  @Test func `values stand one after the other, numbers with their highest byte first`() throws {
    let data = Data(packing: try #require(id), Int64(511), Int32(-2), UInt8(7))
    #expect(data.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() == bytes)
    let values = try #require(data.unpacked(as: Session.ID.self, Int64.self, Int32.self, UInt8.self))
    #expect(values == (try #require(id), 511, -2, 7))
  }

  @Test func `content with a byte too many or too few is refused, and a slice is read from its beginning`() throws {
    let data = Data(packing: try #require(id), Int64(511))
    #expect(data.dropLast().unpacked(as: Session.ID.self, Int64.self) == nil)
    #expect((data + [0]).unpacked(as: Session.ID.self, Int64.self) == nil)
    #expect(try #require(data.dropFirst(16).unpacked(as: Int64.self)) == 511)
  }
}
