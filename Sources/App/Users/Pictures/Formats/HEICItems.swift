/// The items of a HEIC file, as the boxes `iinf`, `iloc` and `pitm` list them.
struct HEICItems {
  /// The ranges with the bytes of the picture's items, in order. They may overlap.
  let kept: [Range<Int>]
  /// The ranges with the names of all items, and with the media types and URIs of items that are not kept.
  let names: [Range<Int>]

  /// EXIF, XMP and other documents. Documents have a media type or a URI.
  private static let descriptions = Set(["Exif", "mime", "uri "].map(PictureBytes.name))

  /// For all items together. A photo of 4096 by 4096 in tiles of 512 by 512 has 64 items with one extent each.
  private static let maximumExtents = 4096

  /// Nil if the list is broken, if an item lies beyond the file's end or in another file, or if there is no picture.
  init?(in boxes: [HEICBox], of file: PictureBytes) {
    func box(_ name: String) -> HEICBox? { boxes.first { $0.name == PictureBytes.name(name) } }
    guard let information = box("iinf"), let locations = box("iloc"), let primary = box("pitm"),
      let listed = Self.information(in: information, of: file)
    else { return nil }
    let shown = listed.filter { !Self.descriptions.contains($0.type) }
    let store = box("idat")?.content ?? 0..<0
    guard let places = Self.places(in: locations, of: file, store: store),
      let version = file.byte(primary.content.lowerBound),
      let main = file.big(primary.content.lowerBound + 4, version == 0 ? 2 : 4),
      shown.contains(where: { $0.id == main })
    else { return nil }
    let ids = Set(shown.map(\.id))
    kept = places.filter { ids.contains($0.id) }.map(\.range).sorted { $0.lowerBound < $1.lowerBound }
    names = listed.map(\.name)
    guard !kept.isEmpty else { return nil }
  }

  private static func information(
    in box: HEICBox, of file: PictureBytes
  ) -> [(id: Int, type: Int, name: Range<Int>)]? {
    guard let version = file.byte(box.content.lowerBound) else { return nil }
    let start = box.content.lowerBound + (version == 0 ? 6 : 8)
    guard start <= box.content.upperBound, let entries = HEICBox.all(of: file, in: start..<box.content.upperBound)
    else { return nil }
    var items: [(id: Int, type: Int, name: Range<Int>)] = []
    for entry in entries {
      // Version 3 has ids of four bytes. Before version 2, items have no type, so none of them is an image.
      guard entry.name == PictureBytes.name("infe"), let version = file.byte(entry.content.lowerBound),
        version == 2 || version == 3
      else { return nil }
      let width = version == 2 ? 2 : 4
      let type = entry.content.lowerBound + 4 + width + 2
      guard type + 4 <= entry.content.upperBound, let id = file.big(entry.content.lowerBound + 4, width),
        let name = file.big(type, 4)
      else { return nil }
      items.append((id, name, type + 4..<entry.content.upperBound))
    }
    return items
  }

  /// - Parameter store: the content of `idat`, which may also hold items.
  private static func places(
    in box: HEICBox, of file: PictureBytes, store: Range<Int>
  ) -> [(id: Int, range: Range<Int>)]? {
    var reader = Reader(file: file, place: box.content.lowerBound, end: box.content.upperBound)
    guard let version = reader.number(1), version <= 2, reader.number(3) != nil, let sizes = reader.number(2) else {
      return nil
    }
    let (offsets, lengths, bases) = (sizes >> 12, sizes >> 8 & 15, sizes >> 4 & 15)
    let indexes = version == 0 ? 0 : sizes & 15
    guard [offsets, lengths, bases, indexes].allSatisfy({ [0, 4, 8].contains($0) }),
      let count = reader.number(version == 2 ? 4 : 2)
    else { return nil }
    var found: [(id: Int, range: Range<Int>)] = []
    var read = 0
    for _ in 0..<count {
      guard let id = reader.number(version == 2 ? 4 : 2), let method = version == 0 ? 0 : reader.number(2),
        // No item may lie in another file.
        reader.number(2) == 0, let base = reader.number(bases), let extents = reader.number(2)
      else { return nil }
      for _ in 0..<extents {
        read += 1
        guard read <= maximumExtents, reader.number(indexes) != nil, let offset = reader.number(offsets),
          let length = reader.number(lengths)
        else { return nil }
        // An item that is made of other items has no bytes of its own.
        guard method & 15 != 2 else { continue }
        let whole = method & 15 == 0 ? 0..<file.count : store
        guard method & 15 <= 1, base <= whole.count, offset <= whole.count - base,
          length <= whole.count - base - offset
        else { return nil }
        let start = whole.lowerBound + base + offset
        found.append((id, start..<(length == 0 ? whole.upperBound : start + length)))
      }
    }
    return found
  }

  private struct Reader {
    let file: PictureBytes
    var place: Int
    let end: Int

    /// Nil beyond the end, and for a number that is too large for a place in a file.
    mutating func number(_ count: Int) -> Int? {
      guard count <= end - place, let number = file.big(place, count), number >= 0 else { return nil }
      place += count
      return number
    }
  }
}
