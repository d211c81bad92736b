/// A WebP file (RFC 9649) is a RIFF container: one chunk with the picture, or several after a header, `VP8X`.
enum WebPFile {
  private struct Chunk {
    let name: Int
    let content: Range<Int>
  }

  private static let lossy = PictureBytes.name("VP8 ")
  private static let lossless = PictureBytes.name("VP8L")
  private static let extended = PictureBytes.name("VP8X")
  private static let frame = PictureBytes.name("ANMF")
  private static let exif = PictureBytes.name("EXIF")
  /// Pixels and transparency.
  private static let pixels = Set([lossy, lossless, PictureBytes.name("ALPH")])
  /// In addition to the pixels: the color profile and the background of an animation.
  private static let kept = pixels.union([PictureBytes.name("ICCP"), PictureBytes.name("ANIM")])
  /// Bits of the header that announce metadata.
  private static let exifFlag: UInt8 = 0x08
  private static let xmpFlag: UInt8 = 0x04

  static func cleaned(_ file: PictureBytes) -> CleanPicture.Cleaned? {
    guard let length = file.little(4, 4), length >= 4, length <= file.count - 8, file.has("WEBP", at: 8),
      let chunks = chunks(of: file, in: 12..<8 + length), let first = chunks.first,
      let size = size(of: file, first)
    else { return nil }
    guard first.name == extended else { return (size.width, size.height, riff(copy(first, of: file))) }
    // A decoder may allocate what a frame announces.
    func fits(_ chunk: Chunk) -> Bool {
      guard let inner = Self.size(of: file, chunk) else { return false }
      return inner.width <= size.width && inner.height <= size.height
    }

    var orientation: ExifOrientation?
    var hasPixels = false
    var body: [UInt8] = []
    body.reserveCapacity(file.count)
    for chunk in chunks.dropFirst() {
      switch chunk.name {
      case frame:
        guard let frame = cleanedFrame(chunk, of: file, fits) else { return nil }
        body += frame
        hasPixels = true
      case exif where orientation == nil: orientation = Self.orientation(in: file, chunk.content)
      case lossy where !fits(chunk), lossless where !fits(chunk): return nil
      case _ where kept.contains(chunk.name):
        body += copy(chunk, of: file)
        hasPixels = hasPixels || chunk.name == lossy || chunk.name == lossless
      default: break
      }
    }
    guard hasPixels else { return nil }
    var header = Array(file.bytes[first.content])
    header[0] &= ~(exifFlag | xmpFlag)
    if orientation != nil { header[0] |= exifFlag }
    if let orientation { body += chunk(exif, orientation.tiff) }
    return (size.width, size.height, riff(chunk(extended, header) + body))
  }

  /// Nil unless they fill the range.
  private static func chunks(of file: PictureBytes, in range: Range<Int>) -> [Chunk]? {
    var found: [Chunk] = []
    var place = range.lowerBound
    while place < range.upperBound {
      guard let name = file.big(place, 4), let length = file.little(place + 4, 4),
        length <= range.upperBound - place - 8
      else { return nil }
      found.append(Chunk(name: name, content: place + 8..<place + 8 + length))
      // A chunk of odd length has one byte of padding, which some writers leave out at the end.
      place += 8 + length + length % 2
    }
    return found
  }

  private static func size(of file: PictureBytes, _ first: Chunk) -> (width: Int, height: Int)? {
    let start = first.content.lowerBound
    switch first.name {
    case lossy:
      guard first.content.count >= 10, let tag = file.byte(start), tag & 1 == 0,
        file.has("\u{9d}\u{1}\u{2a}", at: start + 3), let width = file.little(start + 6, 2),
        let height = file.little(start + 8, 2)
      else { return nil }
      return (width & 0x3fff, height & 0x3fff)
    case lossless:
      guard first.content.count >= 5, file.byte(start) == 0x2f, let bits = file.little(start + 1, 4), bits >> 29 == 0
      else { return nil }
      return (bits & 0x3fff + 1, bits >> 14 & 0x3fff + 1)
    case extended:
      guard first.content.count >= 10, let width = file.little(start + 4, 3), let height = file.little(start + 7, 3)
      else { return nil }
      return (width + 1, height + 1)
    default: return nil
    }
  }

  /// A frame of an animation has a header of 16 bytes, and its own chunks.
  ///
  /// - Parameter fits: whether the pixels of a chunk are not larger than the picture.
  private static func cleanedFrame(
    _ frame: Chunk, of file: PictureBytes, _ fits: (Chunk) -> Bool
  ) -> [UInt8]? {
    let start = frame.content.lowerBound + 16
    guard frame.content.count >= 16, let inner = chunks(of: file, in: start..<frame.content.upperBound),
      case let pictures = inner.filter({ $0.name == lossy || $0.name == lossless }), !pictures.isEmpty,
      pictures.allSatisfy(fits)
    else { return nil }
    let shown = inner.filter { pixels.contains($0.name) }.flatMap { copy($0, of: file) }
    return chunk(Self.frame, file.bytes[frame.content.lowerBound..<start] + shown)
  }

  /// Some writers begin the content as JPEG does.
  private static func orientation(in file: PictureBytes, _ content: Range<Int>) -> ExifOrientation? {
    let start = content.lowerBound + (content.count >= 6 && file.has("Exif\0\0", at: content.lowerBound) ? 6 : 0)
    return ExifOrientation(in: file, at: start..<content.upperBound)
  }

  private static func copy(_ chunk: Chunk, of file: PictureBytes) -> [UInt8] {
    Self.chunk(chunk.name, Array(file.bytes[chunk.content]))
  }

  private static func chunk(_ name: Int, _ content: [UInt8]) -> [UInt8] {
    let head = [UInt8](big: name, 4) + [UInt8](little: content.count, 4)
    return content.count % 2 == 0 ? head + content : head + content + [0]
  }

  private static func riff(_ chunks: [UInt8]) -> [UInt8] {
    Array("RIFF".utf8) + [UInt8](little: chunks.count + 4, 4) + Array("WEBP".utf8) + chunks
  }
}
