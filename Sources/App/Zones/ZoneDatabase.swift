import Foundation

/// The system's time zone database (tzdata), read at startup. All names and rules come from here, so that an operator
/// who updates it and restarts the processes has the rules of today.
///
/// It is small: some 600 names with about a megabyte of transitions, and a look-up searches these in memory.
public struct ZoneDatabase: Sendable {
  static let usualFolder = "/usr/share/zoneinfo"
  private static let maximumListBytes = 1 << 20

  /// Why no database can be read, in one line that says what to do.
  public struct Unusable: Error, CustomStringConvertible {
    public let description: String
  }

  /// Such as `2026a`. Later versions are greater, compared by their bytes.
  public let version: String
  /// Names of the database whose files are not installed.
  public let missing: [String]
  private let zones: [String: Zone]

  /// - Parameter folder: compiled zones, and `tzdata.zi`, the list of all names with the version. Systems without the
  ///   list have the version in `+VERSION`, and the names of the files are those of the zones.
  public init(folder: String) throws(Unusable) {
    let names: Names
    if let list = Self.text("tzdata.zi", in: folder) {
      names = Names(list)
    } else {
      names = Names(version: Self.text("+VERSION", in: folder) ?? "", files: Self.files(in: folder))
    }
    guard let version = names.version else {
      throw Unusable(
        description: "no time zone database in \(folder): install the package tzdata, or set "
          + "\(Variable.table.zoneFolder.name) to its folder")
    }
    var zones: [String: Zone] = [:]
    for name in names.zones { zones[name] = try Self.zone(name, in: folder) }
    for (name, target) in names.links { zones[name] = zones[target]?.named(name) }
    guard zones["UTC"] != nil else {
      throw Unusable(description: "the time zone database in \(folder) is incomplete: install the package tzdata again")
    }
    self.version = version
    self.zones = zones
    missing = (names.zones + names.links.map(\.name)).filter { zones[$0] == nil }.sorted()
  }

  /// A zone by its name or by that of a link to it; nil for any other text.
  subscript(name: String) -> Zone? { zones[name] }

  var names: [String] { Array(zones.keys) }

  // MARK: Files

  /// Nil if the file is not installed.
  private static func zone(_ name: String, in folder: String) throws(Unusable) -> Zone? {
    guard let bytes = bytes(name, in: folder, atMost: ZoneFile.maximumBytes) else { return nil }
    do throws(ZoneFile.Malformed) {
      let file = try ZoneFile(bytes)
      return Zone(name: name, times: file.times, offsets: file.offsets, rule: file.rule)
    } catch {
      throw Unusable(
        description: "the time zone file \(folder)/\(name) cannot be used: \(error.reason); install tzdata again")
    }
  }

  private static func bytes(_ name: String, in folder: String, atMost limit: Int) -> [UInt8]? {
    guard let file = FileHandle(forReadingAtPath: "\(folder)/\(name)") else { return nil }
    defer { try? file.close() }
    return (try? file.read(upToCount: limit + 1)).map { Array($0) }
  }

  private static func text(_ name: String, in folder: String) -> String? {
    bytes(name, in: folder, atMost: maximumListBytes).map { String(decoding: $0, as: UTF8.self) }
  }

  /// The files of zones, for a system without the list. They begin with the format's name.
  private static func files(in folder: String) -> [String] {
    guard let paths = FileManager.default.enumerator(atPath: folder) else { return [] }
    return paths.compactMap { $0 as? String }.filter { path in
      !notNames.contains(String(path.prefix { $0 != "/" }))
        && bytes(path, in: folder, atMost: 3)?.elementsEqual("TZif".utf8) == true
    }
  }

  /// Besides zones, the folder may have copies of them for other purposes.
  private static let notNames: Set<String> = ["posix", "right", "SystemV", "localtime", "posixrules"]
}

/// The names of zones, and of links to zones.
private struct Names {
  private(set) var version: String?
  private(set) var zones: [String] = []
  private(set) var links: [(name: String, target: String)] = []

  /// - Parameter list: the text of `tzdata.zi`, in which a zone is `Z name ...`, and a link is `L target name`.
  init(_ list: String) {
    var targets: [String: String] = [:]
    for line in list.split(separator: "\n") {
      let words = line.split(separator: " ", maxSplits: 3).map(String.init)
      if version == nil, words.count == 3, words[0] == "#", words[1] == "version" { version = Self.version(words[2]) }
      if words.count > 1, words[0] == "Z", Self.isName(words[1]) { zones.append(words[1]) }
      if words.count == 3, words[0] == "L", Self.isName(words[1]), Self.isName(words[2]) {
        targets[words[2]] = words[1]
      }
    }
    for (name, var target) in targets {
      // A link may lead to another link.
      for _ in 0..<4 { target = targets[target] ?? target }
      links.append((name, target))
    }
  }

  init(version: String, files: [String]) {
    self.version = Self.version(version.trimmingCharacters(in: .whitespacesAndNewlines))
    zones = files.filter(Self.isName)
  }

  /// Letters, digits and `_+-` in parts between slashes: no dots, so that no name leaves the folder.
  private static func isName(_ text: String) -> Bool {
    text.utf8.count <= 64 && text.wholeMatch(of: /[A-Za-z0-9_+\-]+(\/[A-Za-z0-9_+\-]+)*/) != nil
  }

  private static func version(_ text: String) -> String? {
    text.utf8.count <= 32 && text.wholeMatch(of: /[0-9]{4}[a-z]+[A-Za-z0-9.+~\-]*/) != nil ? text : nil
  }
}
