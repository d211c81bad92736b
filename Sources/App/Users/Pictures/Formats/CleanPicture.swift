/// A picture without the metadata that cameras and programs add: places, times, devices, names, texts, earlier
/// versions. The data that is needed to show it stays the same, byte for byte: pixels, color profile, orientation,
/// transparency, animation.
struct CleanPicture {
  let format: PictureFormat
  let bytes: [UInt8]

  /// The size of a picture and the bytes that remain of its file.
  typealias Cleaned = (width: Int, height: Int, bytes: [UInt8])

  /// A larger picture costs the phone that shows it too much memory.
  static let longestSide = 4096

  /// Judges by the bytes alone. Nil if they are not a picture, end too early, or have a side that is too long.
  init?(of bytes: [UInt8]) {
    let file = PictureBytes(bytes)
    let cleaned: Cleaned?
    if file.has("\u{89}PNG\r\n\u{1a}\n", at: 0) {
      (format, cleaned) = (.png, PNGFile.cleaned(file))
    } else if file.has("\u{ff}\u{d8}\u{ff}", at: 0) {
      (format, cleaned) = (.jpeg, JPEGFile.cleaned(file))
    } else if file.has("RIFF", at: 0) {
      (format, cleaned) = (.webp, WebPFile.cleaned(file))
    } else if file.has("ftyp", at: 4) {
      (format, cleaned) = (.heic, HEICFile.cleaned(file))
    } else {
      return nil
    }
    guard let cleaned, (1...Self.longestSide).contains(cleaned.width), (1...Self.longestSide).contains(cleaned.height)
    else { return nil }
    self.bytes = cleaned.bytes
  }
}
