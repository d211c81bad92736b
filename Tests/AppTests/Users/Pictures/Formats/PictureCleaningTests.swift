import Testing

@testable import App

/// The parts of a picture's file that are kept, and those that are dropped.
@Suite struct PictureCleaningTests {
  private static let exif = Sample.join(Sample.ascii("Exif\0\0"), Sample.tiff(orientation: nil))
  private static let xmp = Sample.join(Sample.ascii("<x:xmpmeta>"), Sample.secret)
  private static let profile = Sample.join(Sample.ascii("ICC_PROFILE\0\u{1}\u{1}"), [9, 9, 9])
  private static let adobe = Sample.join(Sample.ascii("Adobe"), [0, 100, 0, 0, 0, 0, 1])

  private func cleaned(_ bytes: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) throws -> [UInt8] {
    let clean = try #require(CleanPicture(of: bytes)?.bytes, sourceLocation: sourceLocation)
    #expect(clean.firstRange(of: Sample.secret) == nil, sourceLocation: sourceLocation)
    // Cleaning once is enough.
    #expect(CleanPicture(of: clean)?.bytes == clean, sourceLocation: sourceLocation)
    return clean
  }

  @Test func `a JPEG keeps its pixels and colors, and loses EXIF, XMP, IPTC, comments and what follows its end`() throws
  {
    let (profile, adobe) = (Sample.segment(0xe2, Self.profile), Sample.segment(0xee, Self.adobe))
    let metadata = Sample.join(
      Sample.segment(0xe1, Self.exif), profile,
      Sample.segment(0xe1, Sample.join(Sample.ascii("http://ns.adobe.com/xap/1.0/\0"), Self.xmp)),
      Sample.segment(0xed, Sample.join(Sample.ascii("Photoshop 3.0\0"), Sample.secret)),
      Sample.segment(0xe2, Sample.join(Sample.ascii("MPF\0"), Sample.secret)), adobe,
      // A marker may have fill bytes before it.
      [0xff, 0xff], Sample.segment(0xfe, Sample.secret))
    let second = Sample.jpeg(metadata: Sample.segment(0xe1, Self.exif))
    let clean = try cleaned(Sample.join(Sample.jpeg(metadata: metadata), second))
    #expect(clean == Sample.jpeg(metadata: Sample.join(profile, adobe)))
  }

  @Test(arguments: [false, true], 1...8 as ClosedRange<UInt16>)
  func `a JPEG that a camera turned is still upright`(_ isBig: Bool, _ orientation: UInt16) throws {
    let tiff = Sample.tiff(orientation: orientation, isBig: isBig)
    let exif = Sample.segment(0xe1, Sample.join(Sample.ascii("Exif\0\0"), tiff))
    let kept = Sample.segment(
      0xe1,
      Sample.join(
        Sample.ascii("Exif\0\0MM\0*"), [0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, UInt8(orientation)],
        [0, 0, 0, 0, 0, 0]))
    #expect(try cleaned(Sample.jpeg(metadata: exif)) == Sample.jpeg(metadata: orientation == 1 ? [] : kept))
  }

  @Test func `a JPEG loses its thumbnail, and EXIF that makes no sense`() throws {
    let start: [UInt8] = [0xff, 0xd8]
    let header = Sample.join(Sample.ascii("JFIF\0"), [1, 1, 0, 0, 1, 0, 1])
    let file = Sample.join(
      start, Sample.segment(0xe0, Sample.join(header, [8, 1], Sample.secret)), Array(Sample.jpeg().dropFirst(20)))
    #expect(try cleaned(file) == Sample.jpeg())
    let tiff = Sample.tiff(orientation: 6)
    for length in 0..<20 {
      let cut = Sample.segment(0xe1, Sample.join(Sample.ascii("Exif\0\0"), Array(tiff.prefix(length))))
      #expect(try cleaned(Sample.jpeg(metadata: cut)) == Sample.jpeg(), "\(length)")
    }
    // One directory is far away, and the other one has more entries than fit.
    let far = Sample.join(Array(tiff.prefix(4)), [0xff, 0xff, 0xff, 0xff], Array(tiff.dropFirst(8)))
    let long = Sample.join(Array(tiff.prefix(8)), [0xff, 0xff, 0, 0], Array(tiff[12..<22]))
    for wrong in [far, long] {
      let exif = Sample.segment(0xe1, Sample.join(Sample.ascii("Exif\0\0"), wrong))
      #expect(try cleaned(Sample.jpeg(metadata: exif)) == Sample.jpeg())
    }
  }

  @Test func `a PNG keeps its pixels, colors and animation, and loses texts, times, EXIF and what follows its end`()
    throws
  {
    let kept = ["gAMA", "iCCP", "PLTE", "tRNS", "acTL", "fcTL"].map { Sample.chunk($0, [1, 2, 3]) }
    let gone = ["tEXt", "zTXt", "iTXt", "tIME", "eXIf", "prVt"].map { Sample.chunk($0, Sample.secret) }
    let metadata = zip(kept, gone).flatMap { $0 + $1 }
    let clean = try cleaned(Sample.join(Sample.png(metadata: metadata), Sample.secret))
    #expect(clean == Sample.png(metadata: Array(kept.joined())))
  }

  @Test func `a PNG that a camera turned is still upright, with a checksum`() throws {
    let clean = try cleaned(Sample.png(metadata: Sample.chunk("eXIf", Sample.tiff(orientation: 6, isBig: false))))
    var chunk = Sample.chunk(
      "eXIf", Sample.join(Sample.ascii("MM\0*"), [0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0]))
    // Computed with zlib's crc32.
    chunk.replaceSubrange(chunk.count - 4..<chunk.count, with: [0xd6, 0x67, 0x4b, 0x69])
    #expect(clean == Sample.png(metadata: chunk))
  }

  @Test func `a WebP keeps its pixels, colors and animation, and loses EXIF, XMP and what follows its end`() throws {
    let pixels = Sample.riff("VP8L", Sample.losslessPixels)
    let profile = Sample.riff("ICCP", Self.profile)
    func frame(_ chunks: [[UInt8]]) -> [UInt8] {
      Sample.riff("ANMF", Sample.join([UInt8](repeating: 1, count: 16), Array(chunks.joined())))
    }
    let secret = Sample.riff("XMP ", Self.xmp)
    for (given, kept) in [
      ([profile, pixels, Sample.riff("EXIF", Self.exif), secret], [profile, pixels]),
      ([profile, frame([pixels, secret]), secret], [profile, frame([pixels])]),
    ] {
      var expected = Sample.webp(kept)
      // The header no longer announces EXIF and XMP.
      expected[20] = 0x20
      #expect(try cleaned(Sample.join(Sample.webp(given), Sample.secret)) == expected)
    }
    #expect(try cleaned(Sample.lossyWebP + Sample.secret) == Sample.lossyWebP)
  }

  @Test(arguments: [[], Sample.ascii("Exif\0\0")])
  func `a WebP that a camera turned is still upright`(_ prefix: [UInt8]) throws {
    let pixels = Sample.riff("VP8L", Sample.losslessPixels)
    let exif = Sample.riff("EXIF", Sample.join(prefix, Sample.tiff(orientation: 8)))
    let clean = try cleaned(Sample.webp([pixels, exif]))
    let kept = Sample.join(
      Sample.ascii("MM\0*"), [0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0])
    var expected = Sample.webp([pixels, Sample.riff("EXIF", kept)])
    expected[20] = 0x28
    #expect(clean == expected)
  }

  @Test func `a HEIC keeps its length and image, and zeros replace EXIF, XMP and unused data`() throws {
    let file = Sample.heic(
      exif: Self.exif, xmp: Self.xmp,
      rest: Sample.join(Sample.box("uuid", Sample.secret), Sample.box("mdat", Sample.secret)))
    let clean = try cleaned(file)
    #expect(clean.count == file.count)
    // All boxes stay where they are. The unneeded one has another name.
    let outer = try #require(HEICBox.all(of: PictureBytes(clean), in: 0..<clean.count))
    #expect(outer.map(\.name) == ["ftyp", "meta", "mdat", "free", "mdat"].map(PictureBytes.name))
    let pixels = try #require(outer.first { $0.name == PictureBytes.name("mdat") }).content
    #expect(Array(clean[pixels].prefix(4)) == Sample.heicPixels)
    #expect(clean[pixels].dropFirst(4).allSatisfy { $0 == 0 })
    // The media type of XMP is gone, too.
    var expected = Array(file[..<pixels.lowerBound])
    let mediaType = try #require(expected.firstRange(of: Sample.ascii("application/rdf+xml")))
    expected.replaceSubrange(mediaType, with: repeatElement(0, count: mediaType.count))
    #expect(Array(clean[..<pixels.lowerBound]) == expected)
  }

  @Test(arguments: [0, 1] as [UInt8]) func `a HEIC with items that have no type is refused`(_ version: UInt8) throws {
    var file = Sample.heic(exif: Self.exif)
    let first = try #require(file.firstRange(of: Sample.ascii("infe"))).upperBound
    let second = try #require(file[first...].firstRange(of: Sample.ascii("infe"))).upperBound
    file[second] = version
    #expect(CleanPicture(of: file) == nil)
  }

  @Test func `a HEIC's size boxes may be longer, but not shorter`() throws {
    // Two boxes of 20 bytes each, for 512 by 512 and for the whole picture.
    let file = Sample.heic(width: 5000)
    #expect(CleanPicture(of: file) == nil)
    let start = try #require(file.firstRange(of: Sample.ascii("ispe"))).lowerBound - 4
    var long = file
    long[start + 3] = 40
    #expect(CleanPicture(of: long) != nil)
    var short = Sample.heic()
    #expect(CleanPicture(of: short) != nil)
    short[start + 3] = 12
    short.replaceSubrange(start + 12..<start + 20, with: Sample.box("free", []))
    #expect(CleanPicture(of: short) == nil)
  }

  @Test func `a HEIC whose items lie beyond its end, or that has no image, is refused`() throws {
    let file = Sample.heic(exif: Self.exif)
    let place = try #require(file.firstRange(of: Sample.ascii("iloc"))).upperBound
    // The first item's offset, then the second's length.
    for offset in [place + 8 + 6, place + 8 + 14 + 10] {
      var wrong = file
      wrong.replaceSubrange(offset..<offset + 4, with: [0x7f, 0xff, 0xff, 0xff])
      #expect(CleanPicture(of: wrong) == nil, "\(offset)")
    }
    var imageless = file
    imageless.replaceSubrange(try #require(file.firstRange(of: Sample.ascii("hvc1"))), with: Sample.ascii("Exif"))
    #expect(CleanPicture(of: imageless) == nil)
  }

  @Test func `no incomplete file passes for a picture`() {
    let turned = Sample.segment(0xe1, Sample.join(Sample.ascii("Exif\0\0"), Sample.tiff(orientation: 6)))
    let files = [
      Sample.png(metadata: Sample.chunk("eXIf", Sample.tiff(orientation: 6))), Sample.jpeg(metadata: turned),
      Sample.extendedWebP, Sample.lossyWebP, Sample.heic(exif: Self.exif),
    ]
    for file in files {
      #expect(CleanPicture(of: file) != nil)
      for length in 0..<file.count {
        #expect(CleanPicture(of: Array(file.prefix(length))) == nil, "\(length) of \(file.count)")
      }
    }
  }
}
