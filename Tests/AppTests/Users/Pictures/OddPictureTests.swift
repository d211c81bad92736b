import Foundation
import Testing

@testable import App

/// Files that cameras, programs and other services write, which decoders have shown in wrong colors or refused.
@Suite struct OddPictureTests {
  private func expectColors(of file: [UInt8], _ what: String, by ana: Phone, in app: TestApp) async throws {
    let response = try await ana.putPicture(file)
    guard response.status == 200, let url = response.json["pictureUrl"].string else {
      Issue.record("\(what) was refused")
      return
    }
    let shown = try await app.fetch(url)
    #expect(try await Sample.showsTheFourColors(shown.bytes), "\(what)")
    #expect(shown.bytes.firstRange(of: Sample.ascii("ICC_PROFILE")) == nil, "\(what)")
  }

  @Test func `odd JPEGs have the right colors`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for name in ["rgb-adobe-12", "rgb-adobe-33", "xyb", "broken-icc", "stray-bytes"] {
        try await expectColors(of: try Sample.file(name), name, by: ana, in: app)
      }
    }
  }

  @Test func `an Adobe segment may have any length`() async throws {
    let (segments, rest) = try Sample.segments(of: try Sample.file("rgb-adobe-12"))
    let others = segments.filter { $0[1] != 0xee }
    #expect(others.count == segments.count - 1)
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      // With its marker and length, the segment of a JPEG has been seen with 31 and 36 bytes.
      for length in [12, 13, 27, 29, 31, 32, 36, 200] {
        let content = Sample.join(
          Sample.ascii("Adobe"), [0, 100, 0, 0, 0, 0, 0], [UInt8](repeating: 0, count: length - 12))
        let file = Sample.join([0xff, 0xd8], Sample.segment(0xee, content), Array(others.joined()), rest)
        try await expectColors(of: file, "\(length)", by: ana, in: app)
      }
    }
  }

  @Test func `bytes between segments are skipped, wherever they are`() async throws {
    let (segments, rest) = try Sample.segments(of: try Sample.file("rgb-adobe-12"))
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for place in 1...segments.count {
        // A zero cannot begin a marker, and 0xff may stand before one any number of times.
        for stray in [[0], [0x12, 0x34, 0], [0xff, 0xff], [UInt8](repeating: 7, count: 1000)] as [[UInt8]] {
          let file = Sample.join(
            [0xff, 0xd8], Array(segments[..<place].joined()), stray, Array(segments[place...].joined()), rest)
          try await expectColors(of: file, "\(stray.prefix(3)) after segment \(place)", by: ana, in: app)
        }
      }
    }
  }

  @Test func `a broken profile is ignored`() async throws {
    let good = Sample.profileWithRedAndGreenExchanged
    func changed(_ place: Int, _ text: String) -> [UInt8] {
      good.replacing(good[place..<place + text.utf8.count], with: Sample.ascii(text), maxReplacements: 1)
    }
    let broken: [(what: String, profile: [UInt8])] = [
      ("text", Sample.ascii(String(repeating: "broken profile ", count: 20))), ("nothing", []),
      ("a header cut", Array(good.prefix(60))), ("a profile cut", Array(good.dropLast(40))),
      ("another signature", changed(36, "xxxx")), ("a link between devices", changed(12, "link")),
      ("a profile of no known space", changed(20, "RGB ")), ("a profile for CMYK", changed(16, "CMYK")),
      ("a profile for gray", changed(16, "GRAY")),
      ("curves of no known type", good.replacing(Sample.ascii("curv"), with: Sample.ascii("zzzz"))),
      (
        "colors of no known type",
        good.replacing(Sample.ascii("XYZ \0\0\0\0"), with: Sample.ascii("zzzz\0\0\0\0"))
      ),
      ("tags without end", Array(good[..<128]) + [0xff, 0xff, 0xff, 0xff] + Array(good[132...])),
      ("tags far away", Array(good[..<132]) + [UInt8](repeating: 0xff, count: 84) + Array(good[216...])),
    ]
    let (segments, rest) = try Sample.segments(of: try Sample.file("rgb-adobe-12"))
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for (what, profile) in broken {
        let segment = Sample.segment(0xe2, Sample.join(Sample.ascii("ICC_PROFILE\0"), [1, 1], profile))
        let file = Sample.join([0xff, 0xd8], segment, Array(segments.joined()), rest)
        try await expectColors(of: file, what, by: ana, in: app)
      }
      // The second of two parts of a profile, without the first.
      let second = Sample.segment(0xe2, Sample.join(Sample.ascii("ICC_PROFILE\0"), [2, 2], good))
      let file = Sample.join([0xff, 0xd8], second, Array(segments.joined()), rest)
      try await expectColors(of: file, "half a profile", by: ana, in: app)
    }
  }

  @Test func `gray pictures stay gray, with and without transparency and a profile`() async throws {
    // Gray with alpha: dark, transparent, light. 8 and 16 bits.
    func png(depth: UInt8, kind: UInt8, _ pixels: [[UInt8]], _ metadata: [UInt8] = []) -> [UInt8] {
      let row = [0] + Array(pixels.map { Array(repeatElement($0, count: 16).joined()) }.joined())
      return Sample.join(
        [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a],
        Sample.chunk(
          "IHDR", Sample.join(Sample.big(UInt32(16 * pixels.count)), Sample.big(UInt32(16)), [depth, kind, 0, 0, 0])),
        metadata, Sample.chunk("IDAT", Sample.zlib(Array(repeatElement(row, count: 16).joined()))),
        Sample.chunk("IEND", []))
    }
    let profile = Sample.chunk("iCCP", Sample.ascii("x\0\0") + Sample.zlib(Sample.profileWithRedAndGreenExchanged))
    let files: [(what: String, file: [UInt8], shades: [Int])] = [
      ("8 bits", png(depth: 8, kind: 0, [[40], [200]]), [40, 200]),
      ("16 bits", png(depth: 16, kind: 0, [[40, 40], [200, 200]]), [40, 200]),
      ("8 bits and alpha", png(depth: 8, kind: 4, [[40, 255], [0, 0], [200, 255]]), [40, 255, 200]),
      ("16 bits and alpha", png(depth: 16, kind: 4, [[40, 40, 255, 255], [0, 0, 0, 0]]), [40, 255]),
      ("a profile for RGB", png(depth: 8, kind: 0, [[40], [200]], profile), [40, 200]),
    ]
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for (what, file, shades) in files {
        let shown = try await app.fetch(try await ana.show(file))
        let colors = try await Sample.colors(of: shown.bytes, at: shades.indices.map { (16 * $0 + 8, 8) })
        for (color, shade) in zip(colors, shades) {
          #expect(!color.isEmpty && color.allSatisfy { abs($0 - shade) <= 6 }, "\(what): \(colors)")
        }
      }
    }
  }
}
