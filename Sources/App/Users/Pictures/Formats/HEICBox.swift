/// A box of ISO/IEC 14496-12: a length, a name, and content.
struct HEICBox {
  let name: Int
  let start: Int
  let content: Range<Int>

  /// The content without the version and flags that a full box begins with.
  var fullContent: Range<Int> { min(content.lowerBound + 4, content.upperBound)..<content.upperBound }

  /// The boxes in a range. Nil unless they fill it.
  static func all(of file: PictureBytes, in range: Range<Int>) -> [HEICBox]? {
    var found: [HEICBox] = []
    var place = range.lowerBound
    while place < range.upperBound {
      let rest = range.upperBound - place
      guard rest >= 8, let size = file.big(place, 4), let name = file.big(place + 4, 4) else { return nil }
      let head = size == 1 ? 16 : 8
      let length = size == 1 ? file.big(place + 8, 8) ?? 0 : size == 0 ? rest : size
      guard length >= head, length <= rest else { return nil }
      found.append(HEICBox(name: name, start: place, content: place + head..<place + length))
      place += length
    }
    return found
  }
}
