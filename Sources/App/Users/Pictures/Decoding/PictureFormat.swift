/// The formats of pictures that users may upload.
enum PictureFormat: Equatable {
  case jpeg, png, webp, heic

  /// Judges by the first bytes, as decoders do. The decoder judges the rest. Nil for any other format: the decoder may
  /// know formats that few people have tested against hostile files.
  init?(of bytes: [UInt8]) {
    if bytes.starts(with: [0xff, 0xd8, 0xff]) {
      self = .jpeg
    } else if bytes.starts(with: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) {
      self = .png
    } else if bytes.starts(with: "RIFF".utf8), bytes.dropFirst(8).starts(with: "WEBP".utf8) {
      self = .webp
    } else if Self.isHEIC(bytes) {
      self = .heic
    } else {
      return nil
    }
  }

  /// Whether the file begins with a box that names one of HEIC's brands: the main brand or, after its version, a
  /// compatible one.
  private static func isHEIC(_ bytes: [UInt8]) -> Bool {
    guard bytes.count >= 12, bytes.dropFirst(4).starts(with: "ftyp".utf8) else { return false }
    let length = bytes[..<4].reduce(0) { $0 << 8 | Int($1) }
    let names = stride(from: 8, to: min(length, bytes.count, longestBrands) - 3, by: 4)
    return names.contains { place in brands.contains { bytes[place...].starts(with: $0.utf8) } }
  }

  private static let brands = ["heic", "heix", "heim", "heis"]
  /// Encoders name a dozen brands at most.
  private static let longestBrands = 512
}
