import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Testing

@testable import App

/// Small pictures that any program can decode, and small files that are not pictures.
enum Sample {
  /// A gray picture. Its corner at the top left is black.
  ///
  /// - Parameter metadata: segments before the frame.
  static func jpeg(width: UInt16 = 1, height: UInt16 = 1, metadata: [UInt8] = []) -> [UInt8] {
    // A picture that is refused for its size needs fewer blocks.
    let blocks = min((Int(width) + 7) / 8 * ((Int(height) + 7) / 8), 1 << 20)
    // A black block is 10 0000000 0: the code of a difference of 7 bits, the lowest one, no details. The next block has
    // the highest difference, and 00 is the same color again.
    var scan: [UInt8] = [0b1000_0000, 0b0010_1111, 0b1110_0000]
    scan += [UInt8](repeating: 0, count: blocks / 4)
    return join(
      [0xff, 0xd8, 0xff, 0xe0, 0, 16], ascii("JFIF\0"), [1, 1, 0, 0, 1, 0, 1, 0, 0], metadata,
      segment(0xdb, [0] + [UInt8](repeating: 8, count: 64)),
      [0xff, 0xc0, 0, 11, 8], big(height), big(width), [1, 1, 0x11, 0],
      // One code of a bit and one of two bits, for differences of no bits and of 7 bits.
      segment(0xc4, [0, 1, 1] + [UInt8](repeating: 0, count: 14) + [0, 7]),
      segment(0xc4, [0x10, 1] + [UInt8](repeating: 0, count: 15) + [0]),
      // Decoders skip what follows the last block.
      [0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0], scan, [0x55, 0xff, 0x00, 0xff, 0xd0, 0x55, 0xff, 0xd9])
  }

  /// A segment of a JPEG.
  static func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] {
    join([0xff, marker], big(UInt16(content.count + 2)), content)
  }

  /// TIFF metadata that names the artist and the place, and optionally the orientation.
  static func tiff(orientation: UInt16?, isBig: Bool = true) -> [UInt8] {
    func number(_ number: some FixedWidthInteger) -> [UInt8] { isBig ? big(number) : big(number.byteSwapped) }
    let turn = orientation.map {
      join(number(UInt16(0x112)), number(UInt16(3)), number(UInt32(1)), number($0), [0, 0])
    }
    let artist = join(number(UInt16(0x13b)), number(UInt16(2)), number(UInt32(secret.count)), number(UInt32(100)))
    let entries = (turn.map { [$0] } ?? []) + [artist]
    let directory = join(number(UInt16(entries.count)), Array(entries.joined()), [0, 0, 0, 0])
    let start = join(isBig ? ascii("MM\0*") : ascii("II*\0"), number(UInt32(8)), directory)
    return join(start, [UInt8](repeating: 0, count: 100 - start.count), secret)
  }

  /// Metadata that must not reach other users.
  static let secret = ascii("Ana, 52.5200 N 13.4050 E")

  /// Text that is a WebP file of one pixel.
  static let webpText = "RIFF\u{16}\0\0\0WEBPVP8L\u{9}\0\0\0/\0\0\0\0(@D\u{4}\0"

  /// The content of its chunk.
  static let onePixel = Array(webpText.utf8.dropFirst(20).prefix(9))

  static let lossyWebP = join(
    ascii("RIFF\u{16}\0\0\0WEBPVP8 \u{a}\0\0\0"), [0x30, 1, 0, 0x9d, 1, 0x2a, 1, 0, 1, 0])

  static let extendedWebP = webp([riff("VP8L", losslessPixels)])

  /// A WebP file with these chunks, and with a header that announces EXIF and XMP.
  static func webp(_ chunks: [[UInt8]], width: Int = 64, height: Int = 64) -> [UInt8] {
    let sides = [width - 1, height - 1].flatMap { Array(big(UInt32($0).byteSwapped).prefix(3)) }
    let body = join(ascii("WEBP"), riff("VP8X", join([0x2c, 0, 0, 0], sides)), Array(chunks.joined()))
    return riff("RIFF", body)
  }

  /// A chunk of a WebP file.
  static func riff(_ name: String, _ content: [UInt8]) -> [UInt8] {
    join(ascii(name), big(UInt32(content.count).byteSwapped), content, content.count % 2 == 1 ? [0] : [])
  }

  static let losslessPixels: [UInt8] = [0x2f, 0, 0, 0, 0]

  /// The structure of a photo with one image, which has no pixels. ``PictureDecoder/sample`` has some. It has an EXIF
  /// item and an XMP item unless they are empty.
  static func heic(
    width: UInt32 = 4032, height: UInt32 = 3024, brands: [String] = ["heic", "mif1", "heic"], exif: [UInt8] = [],
    xmp: [UInt8] = [], rest: [UInt8] = []
  ) -> [UInt8] {
    let compatible = brands.dropFirst().flatMap { ascii($0) }
    let type = box("ftyp", join(ascii(brands[0]), [0, 0, 0, 0], compatible))
    let tile = box("ispe", join([0, 0, 0, 0], big(UInt32(512)), big(UInt32(512))))
    let whole = box("ispe", join([0, 0, 0, 0], big(width), big(height)))
    let properties = box("iprp", box("ipco", join(tile, whole)))
    let handler = box("hdlr", [UInt8](repeating: 0, count: 20))
    let all: [(type: String, name: [UInt8], bytes: [UInt8])] = [
      ("hvc1", [0], heicPixels), ("Exif", [0], exif), ("mime", ascii("\0application/rdf+xml\0"), xmp),
    ]
    let items = all.filter { !$0.bytes.isEmpty }

    func meta(startingAt first: Int) -> [UInt8] {
      var place = first
      var (entries, locations): ([UInt8], [UInt8]) = ([], [])
      for (index, item) in items.enumerated() {
        let id = UInt16(index + 1)
        entries += box("infe", join([2, 0, 0, 0], big(id), [0, 0], ascii(item.type), item.name))
        locations += join(big(id), [0, 0, 0, 1], big(UInt32(place)), big(UInt32(item.bytes.count)))
        place += item.bytes.count
      }
      let count = big(UInt16(items.count))
      return box(
        "meta",
        join(
          [0, 0, 0, 0], handler, box("pitm", [0, 0, 0, 0, 0, 1]), box("iinf", join([0, 0, 0, 0], count, entries)),
          box("iloc", join([0, 0, 0, 0, 0x44, 0], count, locations)), properties))
    }
    let start = type.count + meta(startingAt: 0).count + 8
    return join(type, meta(startingAt: start), box("mdat", Array(items.map(\.bytes).joined())), rest)
  }

  static let heicPixels: [UInt8] = [1, 2, 3, 4]

  static func box(_ name: String, _ content: [UInt8]) -> [UInt8] {
    join(big(UInt32(content.count + 8)), ascii(name), content)
  }

  static func ascii(_ text: String) -> [UInt8] { Array(text.utf8) }

  static func join(_ parts: [UInt8]...) -> [UInt8] { Array(parts.joined()) }

  static func big(_ number: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { Array($0) }
  }
}
