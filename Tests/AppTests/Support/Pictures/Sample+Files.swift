import Foundation
import TestSupport
import Testing

@testable import App

extension Sample {
  /// A picture of 64 by 64 pixels: white and red above, lime and blue below.
  ///
  /// - Parameter name: `rgb-adobe-12` has its colors as RGB, by an Adobe segment of 12 bytes, and its components are
  ///   numbered as those of other pictures are. `rgb-adobe-33` has a longer segment. `xyb` has colors that only its
  ///   profile explains, which is a table for the perceptual intent. `broken-icc` and `stray-bytes` are what they say.
  static func file(_ name: String) throws -> [UInt8] {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Files")
    return Array(try Data(contentsOf: folder.appending(path: "\(name).jpg")))
  }

  /// The segments of a JPEG before its pixels, with their markers, and all that follows.
  static func segments(of jpeg: [UInt8]) throws -> (segments: [[UInt8]], rest: [UInt8]) {
    var segments: [[UInt8]] = []
    var place = 2
    while jpeg[place + 1] != 0xda {
      try #require(jpeg[place] == 0xff)
      let end = place + 2 + Int(jpeg[place + 2]) << 8 + Int(jpeg[place + 3])
      segments.append(Array(jpeg[place..<end]))
      place = end
    }
    return (segments, Array(jpeg[place...]))
  }

  /// Width and height.
  static func sides(of jpeg: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) throws -> [Int] {
    try #require(PictureFormat(of: jpeg) == .jpeg, sourceLocation: sourceLocation)
    let frame = try segments(of: jpeg).segments.first { [0xc0, 0xc2].contains($0[1]) }
    let bytes = try #require(frame, sourceLocation: sourceLocation)
    return [Int(bytes[7]) << 8 | Int(bytes[8]), Int(bytes[5]) << 8 | Int(bytes[6])]
  }

  /// The colors of pixels, as libvips decodes them: one number for gray, three for red, green and blue.
  static func colors(of jpeg: some Sequence<UInt8>, at places: [(x: Int, y: Int)]) async throws -> [[Int]] {
    let file = FileManager.default.temporaryDirectory.appending(path: "muster-colors-\(UUID().uuidString).jpg")
    defer { try? FileManager.default.removeItem(at: file) }
    try Data(jpeg).write(to: file)
    var colors: [[Int]] = []
    for (x, y) in places {
      let program = try await Program("/usr/bin/env", ["vips", "getpoint", file.path, "\(x)", "\(y)"])
      #expect(try await program.exitStatus() == 0, "\(program.standardError)")
      colors.append(program.standardOutput.split(whereSeparator: \.isWhitespace).compactMap { Int($0) })
    }
    return colors
  }

  /// Whether a picture shows what those of ``file(_:)`` do.
  static func showsTheFourColors(_ jpeg: some Sequence<UInt8>) async throws -> Bool {
    let wanted = [[255, 255, 255], [255, 0, 0], [0, 255, 0], [0, 0, 255]]
    let found = try await colors(of: jpeg, at: [(16, 16), (48, 16), (16, 48), (48, 48)])
    return zip(found, wanted).allSatisfy { $0.count == 3 && zip($0, $1).allSatisfy { abs($0 - $1) <= 32 } }
  }

  /// An ICC profile with the primaries of sRGB, except that red is green and green is red.
  static var profileWithRedAndGreenExchanged: [UInt8] {
    func fixed(_ numbers: [Double]) -> [UInt8] { numbers.flatMap { big(Int32(($0 * 65_536).rounded())) } }
    func color(_ numbers: Double...) -> [UInt8] { ascii("XYZ \0\0\0\0") + fixed(numbers) }
    let curve = ascii("curv\0\0\0\0") + big(UInt32(1)) + big(UInt16(2.2 * 256)) + [0, 0]
    let tags: [(name: String, content: [UInt8])] = [
      ("wtpt", color(0.9642, 1, 0.8249)), ("rXYZ", color(0.3851, 0.7169, 0.0971)),
      ("gXYZ", color(0.4361, 0.2225, 0.0139)), ("bXYZ", color(0.1431, 0.0606, 0.7141)),
      ("rTRC", curve), ("gTRC", curve), ("bTRC", curve),
    ]
    var (table, contents): ([UInt8], [UInt8]) = ([], [])
    let start = 128 + 4 + 12 * tags.count
    for (name, content) in tags {
      table += ascii(name) + big(UInt32(start + contents.count)) + big(UInt32(content.count))
      contents += content
    }
    var header = big(UInt32(start + contents.count)) + [0, 0, 0, 0, 2, 0x10, 0, 0]
    header += ascii("mntrRGB XYZ ") + [UInt8](repeating: 0, count: 12) + ascii("acsp")
    header += [UInt8](repeating: 0, count: 28) + fixed([0.9642, 1, 0.8249])
    header += [UInt8](repeating: 0, count: 128 - header.count)
    return header + big(UInt32(tags.count)) + table + contents
  }
}
