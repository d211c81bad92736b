/// A PNG file (W3C PNG, third edition) is a sequence of named chunks with checksums, from `IHDR` to `IEND`.
enum PNGFile {
  /// Pixels, animation, and the meaning of their colors. Texts, times and everything else are dropped.
  private static let kept = Set(
    [
      "PLTE", "IDAT", "tRNS", "cHRM", "gAMA", "iCCP", "sBIT", "sRGB", "cICP", "mDCV", "cLLI", "bKGD", "pHYs", "acTL",
      "fcTL", "fdAT",
    ].map(PictureBytes.name))

  static func cleaned(_ file: PictureBytes) -> CleanPicture.Cleaned? {
    guard let size = size(of: file) else { return nil }
    var orientation: ExifOrientation?
    var hasPixels = false
    var rest: [UInt8] = []
    rest.reserveCapacity(file.count)

    var place = 8 + 25
    while let length = file.big(place, 4), let name = file.big(place + 4, 4), length <= file.count - place - 12 {
      let chunk = place..<place + 12 + length
      place = chunk.upperBound
      if name == PictureBytes.name("IEND") {
        guard hasPixels, length == 0 else { return nil }
        var bytes = Array(file.bytes[..<33])
        if let orientation { bytes += Self.chunk("eXIf", orientation.tiff) }
        bytes += rest
        bytes += file.bytes[chunk]
        return (size.width, size.height, bytes)
      }
      if name == PictureBytes.name("IDAT") { hasPixels = true }
      if kept.contains(name) {
        rest += file.bytes[chunk]
      } else if name == PictureBytes.name("eXIf"), orientation == nil {
        orientation = ExifOrientation(in: file, at: chunk.lowerBound + 8..<chunk.upperBound - 4)
      }
    }
    return nil
  }

  /// Reads the first chunk, which must be the header.
  private static func size(of file: PictureBytes) -> (width: Int, height: Int)? {
    guard file.big(8, 4) == 13, file.has("IHDR", at: 12), let width = file.big(16, 4), let height = file.big(20, 4),
      let depth = file.byte(24), [1, 2, 4, 8, 16].contains(depth), let color = file.byte(25),
      [0, 2, 3, 4, 6].contains(color), file.big(26, 2) == 0, let interlacing = file.byte(28), interlacing <= 1
    else { return nil }
    return (width, height)
  }

  private static func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
    let checked = Array(name.utf8) + content
    return [UInt8](big: content.count, 4) + checked + [UInt8](big: Int(checkSum(of: checked)), 4)
  }

  /// CRC-32, bit by bit, because it covers only a few bytes.
  private static func checkSum(of bytes: [UInt8]) -> UInt32 {
    var sum = UInt32.max
    for byte in bytes {
      sum ^= UInt32(byte)
      for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ 0xedb8_8320 : sum >> 1 }
    }
    return ~sum
  }
}
