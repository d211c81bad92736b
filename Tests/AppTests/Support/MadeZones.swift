import Foundation

@testable import App

/// A time zone database made for a test: a folder with `tzdata.zi` and compiled files.
struct MadeZones {
  /// When the offset of a zone changes, in seconds since 1970, and the offset from then on.
  typealias Change = (time: Int64, offset: Int32, isDaylight: Bool)

  struct Zone {
    var first: (offset: Int32, isDaylight: Bool) = (0, false)
    var changes: [Change] = []
    /// A rule as in the variable `TZ`; empty if the last offset stays.
    var rule = ""
  }

  let folder: URL

  /// - Parameters:
  ///   - links: the targets of links, by the names of these.
  ///   - hasList: whether there is `tzdata.zi`. Otherwise, the version is in `+VERSION`.
  init(version: String, _ zones: [String: Zone], links: [String: String] = [:], hasList: Bool = true) throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "muster-zones-\(UUID().uuidString)")
    var list = "# version \(version)\n# This zic input file is in the public domain.\n"
    var zones = zones
    zones["UTC"] = Zone(rule: "UTC0")
    for (name, zone) in zones.sorted(by: { $0.key < $1.key }) {
      list += "Z \(name) 0 - X\n1 R X%s\n"
      try write(Data(Self.file(zone)), to: name)
    }
    for (name, target) in links.sorted(by: { $0.key < $1.key }) { list += "L \(target) \(name)\n" }
    try write(Data((hasList ? list : "\(version)\n").utf8), to: hasList ? "tzdata.zi" : "+VERSION")
  }

  func write(_ data: Data, to name: String) throws {
    let file = folder.appending(path: name)
    try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try data.write(to: file)
  }

  func database() throws -> ZoneDatabase { try ZoneDatabase(folder: folder.path) }

  func remove() {
    try? FileManager.default.removeItem(at: folder)
  }

  /// The bytes of a file in TZif, version 2. Its first block is empty, as the system's files have it.
  static func file(_ zone: Zone) -> [UInt8] {
    func bytes(_ value: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }
    func header(times: Int, types: Int, characters: Int) -> [UInt8] {
      Array("TZif2".utf8) + [UInt8](repeating: 0, count: 15)
        + [0, 0, 0, times, types, characters].flatMap { bytes(UInt32($0)) }
    }
    let types = [zone.first] + zone.changes.map { ($0.offset, $0.isDaylight) }
    var file = header(times: 0, types: 1, characters: 1) + [UInt8](repeating: 0, count: 7)
    file += header(times: zone.changes.count, types: types.count, characters: 4)
    file += zone.changes.flatMap { bytes($0.time) }
    file += zone.changes.indices.map { UInt8($0 + 1) }
    for (offset, isDaylight) in types { file += bytes(offset) + [isDaylight ? 1 : 0, 0] }
    return file + Array("ABC\u{0}\n\(zone.rule)\n".utf8)
  }
}
