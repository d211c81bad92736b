/// How a picture must be turned to be upright, according to EXIF. A viewer needs nothing else from EXIF.
struct ExifOrientation {
  private static let tag = 0x0112
  private static let short = 3
  private static let turned = 2...8

  private let number: Int

  /// Nil if the picture is already upright, or the bytes are not EXIF.
  ///
  /// - Parameter range: of a TIFF file, which is the format of EXIF.
  init?(in file: PictureBytes, at range: Range<Int>) {
    let isBig = file.has("MM\0*", at: range.lowerBound)
    guard isBig || file.has("II*\0", at: range.lowerBound) else { return nil }
    func number(_ offset: Int, _ count: Int) -> Int? {
      guard offset <= range.count - count else { return nil }
      let place = range.lowerBound + offset
      return isBig ? file.big(place, count) : file.little(place, count)
    }
    guard let directory = number(4, 4), let count = number(directory, 2) else { return nil }
    for entry in stride(from: directory + 2, to: directory + 2 + 12 * count, by: 12) {
      guard let tag = number(entry, 2) else { return nil }
      guard tag == Self.tag else { continue }
      guard number(entry + 2, 2) == Self.short, number(entry + 4, 4) == 1, let value = number(entry + 8, 2),
        Self.turned.contains(value)
      else { return nil }
      self.number = value
      return
    }
    return nil
  }

  /// A TIFF file that contains only the orientation.
  var tiff: [UInt8] {
    var bytes: [UInt8] = [0x4d, 0x4d, 0, 0x2a, 0, 0, 0, 8, 0, 1]
    bytes += [UInt8](big: Self.tag, 2) + [UInt8](big: Self.short, 2) + [UInt8](big: 1, 4)
    // The value field has four bytes. The last four say that no directory follows.
    bytes += [UInt8](big: number, 2)
    bytes += [0, 0, 0, 0, 0, 0]
    return bytes
  }
}
