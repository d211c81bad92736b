import Postgres

/// The kinds of pictures that we take, each by the media type that it is served as.
enum PictureFormat: String, SQLValue {
  case jpeg = "image/jpeg"
  case png = "image/png"
  case webp = "image/webp"
  case heic = "image/heic"

  /// What some bytes are, judged by them alone: by how they begin, and by a header that makes sense. Nil for anything
  /// else, and for a picture of so many pixels that to show it would cost a friend's phone its memory.
  init?(of bytes: [UInt8]) {
    let file = PictureFile(bytes: bytes)
    let format: PictureFormat
    let size: PictureFile.Size?
    if file.has("\u{89}PNG\r\n\u{1a}\n", at: 0) {
      (format, size) = (.png, file.pngSize)
    } else if file.has("\u{ff}\u{d8}\u{ff}", at: 0) {
      (format, size) = (.jpeg, file.jpegSize)
    } else if file.has("RIFF", at: 0) {
      (format, size) = (.webp, file.webpSize)
    } else if file.has("ftyp", at: 4) {
      (format, size) = (.heic, file.heicSize)
    } else {
      return nil
    }
    guard let size, (1...16_384).contains(size.width), (1...16_384).contains(size.height),
      size.width * size.height <= 64_000_000
    else { return nil }
    self = format
  }
}

/// A file that may be a picture. Nothing is read beyond its end, whatever it says of itself.
private struct PictureFile {
  typealias Size = (width: Int, height: Int)

  let bytes: [UInt8]

  /// From the first chunk, which must be the header.
  var pngSize: Size? {
    guard big(8, 4) == 13, has("IHDR", at: 12), let width = big(16, 4), let height = big(20, 4),
      let depth = byte(24), [1, 2, 4, 8, 16].contains(depth), let color = byte(25), [0, 2, 3, 4, 6].contains(color),
      big(26, 2) == 0, let interlacing = byte(28), interlacing <= 1
    else { return nil }
    return (width, height)
  }

  /// From the frame's header, which comes before the first scan.
  var jpegSize: Size? {
    var place = 2
    while byte(place) == 0xff, let marker = byte(place + 1) {
      switch marker {
      case 0xff: place += 1
      case 0x01, 0xd0...0xd7: place += 2
      case 0xd8...0xda: return nil
      case 0xc0...0xc3, 0xc5...0xc7, 0xc9...0xcb, 0xcd...0xcf:
        guard let height = big(place + 5, 2), let width = big(place + 7, 2), let components = byte(place + 9),
          (1...4).contains(components)
        else { return nil }
        return (width, height)
      default:
        guard let length = big(place + 2, 2), length >= 2 else { return nil }
        place += 2 + length
      }
    }
    return nil
  }

  /// From the first chunk, of one of three kinds.
  var webpSize: Size? {
    guard let length = little(4, 4), length >= 18, length <= bytes.count - 8, has("WEBPVP8", at: 8) else { return nil }
    switch byte(15) {
    case UInt8(ascii: " "):
      guard let tag = byte(20), tag & 1 == 0, has("\u{9d}\u{1}\u{2a}", at: 23), let width = little(26, 2),
        let height = little(28, 2)
      else { return nil }
      return (width & 0x3fff, height & 0x3fff)
    case UInt8(ascii: "L"):
      guard byte(20) == 0x2f, let bits = little(21, 4), bits >> 29 == 0 else { return nil }
      return (bits & 0x3fff + 1, bits >> 14 & 0x3fff + 1)
    case UInt8(ascii: "X"):
      guard let width = little(24, 3), let height = little(27, 3) else { return nil }
      return (width + 1, height + 1)
    default: return nil
    }
  }

  /// As large as the largest of its images: a photo is made of tiles, and has a thumbnail.
  var heicSize: Size? {
    let outer = boxes(in: 0..<bytes.count)
    guard let type = outer.first, type.name == Self.name("ftyp"), type.content.count >= 8,
      let meta = outer.first(where: { $0.name == Self.name("meta") })
    else { return nil }
    // The brand, and after a version those that it is compatible with.
    let brands = stride(from: type.content.lowerBound, to: type.content.upperBound - 3, by: 4).map { big($0, 4) }
    guard ["heic", "heix", "heim", "heis"].contains(where: { brands.contains(Self.name($0)) }) else { return nil }
    // A full box: its version and flags come first.
    var properties = min(meta.content.lowerBound + 4, meta.content.upperBound)..<meta.content.upperBound
    for name in ["iprp", "ipco"] {
      guard let box = boxes(in: properties).first(where: { $0.name == Self.name(name) }) else { return nil }
      properties = box.content
    }
    var size: Size = (0, 0)
    for box in boxes(in: properties) where box.name == Self.name("ispe") && box.content.count == 12 {
      size.width = max(size.width, big(box.content.lowerBound + 4, 4) ?? 0)
      size.height = max(size.height, big(box.content.lowerBound + 8, 4) ?? 0)
    }
    return size
  }

  /// The boxes of ISO/IEC 14496-12 that lie in a range, as far as they are whole.
  private func boxes(in range: Range<Int>) -> [(name: Int, content: Range<Int>)] {
    var found: [(name: Int, content: Range<Int>)] = []
    var place = range.lowerBound
    while range.upperBound - place >= 8, let size = big(place, 4), let name = big(place + 4, 4) {
      let rest = range.upperBound - place
      let head = size == 1 ? 16 : 8
      let length = size == 1 ? big(place + 8, 8) ?? 0 : size == 0 ? rest : size
      guard length >= head, length <= rest else { break }
      found.append((name, place + head..<place + length))
      place += length
    }
    return found
  }

  private static func name(_ text: String) -> Int {
    text.utf8.reduce(0) { $0 << 8 | Int($1) }
  }

  // MARK: Bytes

  /// - Parameter text: whose characters stand for bytes, up to U+00FF.
  func has(_ text: String, at place: Int) -> Bool {
    let wanted = text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
    return place + wanted.count <= bytes.count && bytes[place..<place + wanted.count].elementsEqual(wanted)
  }

  private func byte(_ place: Int) -> UInt8? {
    bytes.indices.contains(place) ? bytes[place] : nil
  }

  private func big(_ place: Int, _ count: Int) -> Int? {
    guard place >= 0, place <= bytes.count - count else { return nil }
    return bytes[place..<place + count].reduce(0) { $0 << 8 | Int($1) }
  }

  private func little(_ place: Int, _ count: Int) -> Int? {
    guard place >= 0, place <= bytes.count - count else { return nil }
    return bytes[place..<place + count].reversed().reduce(0) { $0 << 8 | Int($1) }
  }
}
