import TestSupport

extension Sample {
  /// - Parameters:
  ///   - number: different numbers give different pictures of the same size.
  ///   - length: the length of the file. The picture is then larger than `width` and `height`.
  ///   - metadata: chunks between the header and the pixels.
  static func png(
    _ number: Int = 0, width: UInt32 = 1, height: UInt32 = 1, length: Int? = nil, metadata: [UInt8] = []
  ) -> [UInt8] {
    guard let length else {
      // A picture that is refused for its size needs no pixels.
      let isSmall = UInt64(width) * UInt64(height) <= 1 << 20
      let (columns, rows) = isSmall ? (Int(width), Int(height)) : (0, 0)
      return png(width, height, metadata, rows: pixels(number, columns, rows))
    }
    // The rows have fewer bytes than the file. Empty blocks (5 bytes) and empty chunks (12 bytes) fill it up.
    let width = 512, height = (length - 400) / (4 * 512 + 6)
    let rows = pixels(number, width, height)
    let missing = length - png(UInt32(width), UInt32(height), metadata, rows: rows).count
    let chunks = missing * 3 % 5
    return png(
      UInt32(width), UInt32(height), metadata, rows: rows, blocks: (missing - 12 * chunks) / 5, chunks: chunks)
  }

  /// - Parameters:
  ///   - rows: each has a byte for its filter, and four bytes for each pixel.
  ///   - blocks: the number of empty blocks before the rows.
  ///   - chunks: the number of empty chunks after the rows.
  static func png(
    _ width: UInt32, _ height: UInt32, _ metadata: [UInt8] = [], rows: [UInt8], blocks: Int = 0, chunks: Int = 0
  ) -> [UInt8] {
    join(
      [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a],
      chunk("IHDR", join(big(width), big(height), [8, 6, 0, 0, 0])), metadata,
      chunk("IDAT", zlib(rows, emptyBlocks: blocks)), Array(repeatElement(chunk("IDAT", []), count: chunks).joined()),
      chunk("IEND", []))
  }

  /// A pattern in which missing bytes show.
  private static func pixels(_ number: Int, _ width: Int, _ height: Int) -> [UInt8] {
    var rows: [UInt8] = []
    rows.reserveCapacity(height * (4 * width + 1))
    for row in 0..<height {
      rows.append(0)
      for byte in 0..<4 * width { rows.append(UInt8(truncatingIfNeeded: byte &* 31 &+ row &+ byte >> 8)) }
    }
    if rows.count >= 5 { rows.replaceSubrange(1..<5, with: big(UInt32(number))) }
    return rows
  }

  /// A zlib stream (RFC 1950) without compression.
  static func zlib(_ bytes: [UInt8], emptyBlocks: Int = 0) -> [UInt8] {
    var stream: [UInt8] = [0x78, 0x01]
    for _ in 0..<emptyBlocks { stream += [0, 0, 0, 0xff, 0xff] }
    var place = 0
    repeat {
      let end = min(place + 0xffff, bytes.count)
      let count = UInt16(end - place)
      stream.append(end == bytes.count ? 1 : 0)
      stream += big(count.byteSwapped)
      stream += big((~count).byteSwapped)
      stream += bytes[place..<end]
      place = end
    } while place < bytes.count
    var (low, high): (UInt32, UInt32) = (1, 0)
    for byte in bytes {
      low = (low + UInt32(byte)) % 65_521
      high = (high + low) % 65_521
    }
    return stream + big(high << 16 | low)
  }

  static func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
    let checked = ascii(name) + content
    return join(big(UInt32(content.count)), checked, big(checksum(of: checked)))
  }

  /// CRC-32.
  private static func checksum(of bytes: [UInt8]) -> UInt32 {
    var sum = UInt32.max
    for byte in bytes { sum = checksums[Int(UInt8(truncatingIfNeeded: sum) ^ byte)] ^ sum >> 8 }
    return ~sum
  }

  private static let checksums = (0..<256).map { (number: UInt32) -> UInt32 in
    (0..<8).reduce(number) { sum, _ in sum & 1 == 1 ? sum >> 1 ^ 0xedb8_8320 : sum >> 1 }
  }
}

/// Pictures that JPEG cannot make small.
enum Noise {
  /// - Parameter side: pixels.
  static func png(_ side: Int) throws -> [UInt8] {
    var random = SeededRandom(seed: 1)
    let rows = (0..<side).flatMap { _ in
      [0] + (0..<4 * side).map { $0 % 4 == 3 ? 255 : UInt8.random(in: 0...255, using: &random) }
    }
    return Sample.png(UInt32(side), UInt32(side), rows: rows)
  }
}
