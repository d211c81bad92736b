/// A HEIC file (ISO/IEC 23008-12) is a tree of boxes. Its items, such as tiles, thumbnails and EXIF, are parts of one
/// box's bytes. Another box lists their offsets in the file, so nothing can be cut out without moving the rest.
enum HEICFile {
  /// Overwrites with zeros, in place, everything that no item of the picture refers to, including EXIF and XMP. The
  /// picture's rotation is a property of its item, and stays.
  static func cleaned(_ file: PictureBytes) -> CleanPicture.Cleaned? {
    guard let outer = HEICBox.all(of: file, in: 0..<file.count), let type = outer.first, isHEIC(type, of: file),
      let meta = outer.first(where: { $0.name == PictureBytes.name("meta") }), meta.content.count >= 4,
      let inner = HEICBox.all(of: file, in: meta.fullContent),
      let properties = properties(in: inner, of: file), let size = size(by: properties, of: file),
      let items = HEICItems(in: inner, of: file)
    else { return nil }

    var stores = outer.filter { $0.name == PictureBytes.name("mdat") }.map(\.content)
    stores += inner.filter { $0.name == PictureBytes.name("idat") }.map(\.content)
    guard stores.count <= maximumStores else { return nil }
    // A kept item must lie within one of these, or its bytes could be lost.
    guard items.kept.allSatisfy({ item in stores.contains { item.clamped(to: $0) == item } }) else { return nil }

    var bytes = file.bytes
    for store in stores { clear(store, of: &bytes, except: items.kept) }
    for names in items.names { clear(names, of: &bytes, except: []) }
    var unknown = outer.filter { !keptOutside.contains($0.name) && $0.content != meta.content }
    unknown += inner.filter { !keptInside.contains($0.name) }
    unknown += properties.filter { describing.contains($0.name) }
    for box in unknown {
      bytes.replaceSubrange(box.start + 4..<box.start + 8, with: "free".utf8)
      clear(box.content, of: &bytes, except: [])
    }
    return (size.width, size.height, bytes)
  }

  /// A file with more boxes of bytes is refused. Encoders write one of each kind.
  private static let maximumStores = 16
  private static let keptOutside = Set(["ftyp", "mdat"].map(PictureBytes.name))
  private static let keptInside = Set(
    ["hdlr", "pitm", "iloc", "iinf", "iref", "iprp", "idat", "dinf", "grpl"].map(PictureBytes.name))
  /// Properties that describe a picture to people: texts and times.
  private static let describing = Set(["udes", "altt", "crtt", "mdft", "uuid"].map(PictureBytes.name))
  private static let brands = Set(["heic", "heix", "heim", "heis"].map(PictureBytes.name))

  /// Checks the brand and, after a version, the compatible brands.
  private static func isHEIC(_ type: HEICBox, of file: PictureBytes) -> Bool {
    guard type.name == PictureBytes.name("ftyp"), type.content.count >= 8 else { return false }
    return stride(from: type.content.lowerBound, to: type.content.upperBound - 3, by: 4).contains {
      file.big($0, 4).map(brands.contains) == true
    }
  }

  private static func properties(in boxes: [HEICBox], of file: PictureBytes) -> [HEICBox]? {
    guard let all = boxes.first(where: { $0.name == PictureBytes.name("iprp") }),
      let container = HEICBox.all(of: file, in: all.content)?.first(where: { $0.name == PictureBytes.name("ipco") })
    else { return nil }
    return HEICBox.all(of: file, in: container.content)
  }

  /// The size of the largest image: a photo is made of tiles, and has a thumbnail. Nil if an image has no size.
  private static func size(by properties: [HEICBox], of file: PictureBytes) -> (width: Int, height: Int)? {
    var size = (width: 0, height: 0)
    for box in properties where box.name == PictureBytes.name("ispe") {
      guard box.content.count >= 12, let width = file.big(box.content.lowerBound + 4, 4),
        let height = file.big(box.content.lowerBound + 8, 4)
      else { return nil }
      size = (max(size.width, width), max(size.height, height))
    }
    return size
  }

  /// Zeros a range except for the parts in `kept`, which are in order.
  private static func clear(_ range: Range<Int>, of bytes: inout [UInt8], except kept: [Range<Int>]) {
    var place = range.lowerBound
    func zero(upTo end: Int) {
      guard place < end else { return }
      bytes.replaceSubrange(place..<end, with: repeatElement(0, count: end - place))
    }
    for part in kept where part.overlaps(range) {
      zero(upTo: part.lowerBound)
      place = max(place, part.upperBound)
    }
    zero(upTo: range.upperBound)
  }
}
