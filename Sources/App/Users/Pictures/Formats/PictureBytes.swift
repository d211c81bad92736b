/// A file that may be a picture. Reads stay within its bytes, whatever lengths the file claims.
struct PictureBytes {
  let bytes: [UInt8]

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  var count: Int { bytes.count }

  /// - Parameter text: each character stands for a byte, up to U+00FF.
  func has(_ text: String, at place: Int) -> Bool {
    let wanted = text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
    return place >= 0 && place <= bytes.count - wanted.count
      && bytes[place..<place + wanted.count].elementsEqual(wanted)
  }

  func byte(_ place: Int) -> UInt8? {
    bytes.indices.contains(place) ? bytes[place] : nil
  }

  /// - Parameter count: up to 8; a number of 8 bytes may be negative.
  func big(_ place: Int, _ count: Int) -> Int? {
    guard place >= 0, place <= bytes.count - count else { return nil }
    return bytes[place..<place + count].reduce(0) { $0 << 8 | Int($1) }
  }

  func little(_ place: Int, _ count: Int) -> Int? {
    guard place >= 0, place <= bytes.count - count else { return nil }
    return bytes[place..<place + count].reversed().reduce(0) { $0 << 8 | Int($1) }
  }

  /// A name of four letters, as ``big(_:_:)`` reads it.
  static func name(_ text: String) -> Int {
    text.utf8.reduce(0) { $0 << 8 | Int($1) }
  }
}

extension [UInt8] {
  init(big number: Int, _ count: Int) {
    self = (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * (count - 1 - $0))) }
  }

  init(little number: Int, _ count: Int) {
    self = (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
  }
}
