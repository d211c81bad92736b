/// A compiled time zone: the format TZif of RFC 9636, in all of its versions.
struct ZoneFile {
  struct Malformed: Error {
    let reason: String
  }

  /// The largest files have 4 KiB.
  static let maximumBytes = 64 << 10

  private static let headerBytes = 44
  /// In seconds east of UTC, as RFC 9636 limits them.
  private static let offsets = -89_999...93_599
  /// Longer ago and farther ahead than any year that a calendar has.
  private static let range = -(1 << 60)...(1 << 60)

  /// The counts of a header, in its order.
  private struct Header {
    let version: UInt8
    let utcIndicators: Int
    let standardIndicators: Int
    let leapSeconds: Int
    let times: Int
    let types: Int
    let characters: Int

    /// The bytes of the data behind it.
    func length(timeBytes: Int) -> Int {
      times * (timeBytes + 1) + types * 6 + characters + leapSeconds * (timeBytes + 4) + standardIndicators
        + utcIndicators
    }
  }

  let times: [Int]
  /// One more than `times`.
  let offsets: [Zone.Offset]
  /// Nil if the last offset stays.
  let rule: ZoneRule?

  init(_ bytes: [UInt8]) throws(Malformed) {
    guard bytes.count <= Self.maximumBytes else { throw Malformed(reason: "it is too large") }
    var reader = Reader(rest: bytes[...])
    var header = try Self.header(&reader)
    var timeBytes = 4
    if header.version >= UInt8(ascii: "2") {
      // The first block has only times that fit into 32 bits. A second one has all.
      _ = try reader.take(header.length(timeBytes: 4))
      header = try Self.header(&reader)
      timeBytes = 8
    }
    guard header.leapSeconds == 0 else { throw Malformed(reason: "it counts leap seconds") }
    (times, offsets) = try Self.transitions(&reader, header, timeBytes: timeBytes)
    rule = timeBytes == 8 ? try Self.footer(reader.rest) : nil
  }

  private static func header(_ reader: inout Reader) throws(Malformed) -> Header {
    guard try reader.take(4).elementsEqual("TZif".utf8) else { throw Malformed(reason: "it is not a time zone file") }
    let version = try reader.take(16).first ?? 0
    var counts: [Int] = []
    for _ in 0..<6 {
      let count = try reader.integer(4)
      guard (0...maximumBytes).contains(count) else { throw Malformed(reason: "it has an impossible count") }
      counts.append(count)
    }
    return Header(
      version: version, utcIndicators: counts[0], standardIndicators: counts[1], leapSeconds: counts[2],
      times: counts[3], types: counts[4], characters: counts[5])
  }

  private static func transitions(
    _ reader: inout Reader, _ header: Header, timeBytes: Int
  ) throws(Malformed) -> ([Int], [Zone.Offset]) {
    var times: [Int] = []
    for _ in 0..<header.times {
      let time = try reader.integer(timeBytes)
      guard range.contains(time), times.last.map({ $0 < time }) ?? true else {
        throw Malformed(reason: "its times are out of order")
      }
      times.append(time)
    }
    let places = Array(try reader.take(header.times))
    var types: [Zone.Offset] = []
    for _ in 0..<header.types {
      let seconds = try reader.integer(4)
      guard offsets.contains(seconds) else { throw Malformed(reason: "it has an impossible offset") }
      types.append(Zone.Offset(seconds: seconds, isDaylight: try reader.take(2).first == 1))
    }
    _ = try reader.take(header.characters + header.standardIndicators + header.utcIndicators)
    guard let first = types.first, places.allSatisfy({ $0 < types.count }) else {
      throw Malformed(reason: "an offset is missing")
    }
    return (times, [first] + places.map { types[Int($0)] })
  }

  /// A rule between two line feeds. It may be empty.
  private static func footer(_ bytes: ArraySlice<UInt8>) throws(Malformed) -> ZoneRule? {
    let lineFeed = UInt8(ascii: "\n")
    guard bytes.first == lineFeed, let end = bytes.dropFirst().firstIndex(of: lineFeed) else {
      throw Malformed(reason: "it is cut off")
    }
    let text = String(decoding: bytes[(bytes.startIndex + 1)..<end], as: UTF8.self)
    if text.isEmpty { return nil }
    guard let rule = ZoneRule(text) else { throw Malformed(reason: "its rule is malformed") }
    return rule
  }

  private struct Reader {
    var rest: ArraySlice<UInt8>

    mutating func take(_ count: Int) throws(Malformed) -> ArraySlice<UInt8> {
      guard count <= rest.count else { throw Malformed(reason: "it is cut off") }
      let taken = rest.prefix(count)
      rest = rest.dropFirst(count)
      return taken
    }

    /// A signed integer, its most significant byte first.
    mutating func integer(_ count: Int) throws(Malformed) -> Int {
      var value: UInt64 = 0
      for byte in try take(count) { value = value << 8 | UInt64(byte) }
      let unused = UInt64(64 - count * 8)
      return Int(Int64(bitPattern: value << unused) >> Int64(unused))
    }
  }
}
