/// A JPEG file (ITU-T T.81) is a sequence of segments, each with a marker, up to the end marker.
enum JPEGFile {
  /// Keeps the data that decodes the picture, its color profile, and the orientation from EXIF. Drops everything after
  /// the picture's end, where cameras add whole pictures with EXIF of their own.
  static func cleaned(_ file: PictureBytes) -> CleanPicture.Cleaned? {
    var header: [UInt8] = []
    var orientation: ExifOrientation?
    var size: (width: Int, height: Int)?
    var hasScan = false
    var kept: [UInt8] = []
    kept.reserveCapacity(file.count)

    var place = 2
    while file.byte(place) == 0xff, let marker = file.byte(place + 1) {
      // Any marker may have fill bytes before it.
      if marker == 0xff {
        place += 1
        continue
      }
      if marker == 0xd9 {
        guard let size, hasScan else { return nil }
        var bytes: [UInt8] = [0xff, 0xd8] + header
        if let orientation { bytes += segment(0xe1, Array("Exif\0\0".utf8) + orientation.tiff) }
        bytes += kept
        bytes += [0xff, 0xd9]
        return (size.width, size.height, bytes)
      }
      guard let length = file.big(place + 2, 2), length >= 2, length <= file.count - place - 2 else { return nil }
      let extent = place..<place + 2 + length
      let content = place + 4..<extent.upperBound
      place = extent.upperBound
      switch marker {
      case 0xc0...0xc3, 0xc5...0xc7, 0xc9...0xcb, 0xcd...0xcf:
        guard size == nil, let frame = frameSize(in: file, at: content) else { return nil }
        size = frame
        kept += file.bytes[extent]
      case 0xda:
        guard size != nil, let end = endOfScan(in: file, from: place) else { return nil }
        hasScan = true
        kept += file.bytes[extent.lowerBound..<end]
        place = end
      // Tables and parameters for decoding.
      case 0xc4, 0xcc, 0xdb, 0xdc, 0xdd: kept += file.bytes[extent]
      case 0xe0 where header.isEmpty: header = withoutThumbnail(file, content) ?? []
      case 0xe1 where orientation == nil && file.has("Exif\0\0", at: content.lowerBound):
        orientation = ExifOrientation(
          in: file, at: min(content.lowerBound + 6, content.upperBound)..<content.upperBound)
      case 0xe2 where file.has("ICC_PROFILE\0", at: content.lowerBound): kept += file.bytes[extent]
      // The color encoding.
      case 0xee where file.has("Adobe", at: content.lowerBound) && content.count == 12: kept += file.bytes[extent]
      // These markers have no segment and occur only within scans.
      case 0x00, 0x01, 0xd0...0xd8: return nil
      default: break
      }
    }
    return nil
  }

  private static func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] {
    [0xff, marker] + [UInt8](big: content.count + 2, 2) + content
  }

  private static func frameSize(in file: PictureBytes, at content: Range<Int>) -> (width: Int, height: Int)? {
    guard content.count >= 6, let height = file.big(content.lowerBound + 1, 2),
      let width = file.big(content.lowerBound + 3, 2), let components = file.byte(content.lowerBound + 5),
      (1...4).contains(components)
    else { return nil }
    return (width, height)
  }

  /// The place of the next marker that is not part of the scan.
  private static func endOfScan(in file: PictureBytes, from start: Int) -> Int? {
    var place = start
    while let found = file.bytes[place...].firstIndex(of: 0xff), let next = file.byte(found + 1) {
      switch next {
      case 0x00, 0xd0...0xd7: place = found + 2
      case 0xff: place = found + 1
      default: return found
      }
    }
    return nil
  }

  /// JFIF's header, which contains the pixel density.
  private static func withoutThumbnail(_ file: PictureBytes, _ content: Range<Int>) -> [UInt8]? {
    guard content.count >= 14, file.has("JFIF\0", at: content.lowerBound) else { return nil }
    return segment(0xe0, file.bytes[content.lowerBound..<content.lowerBound + 12] + [0, 0])
  }
}
