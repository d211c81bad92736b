import Foundation
import HTTPServer
import Postgres

struct ExportFolder {
  struct File: Sendable {
    let name: String
    let bytes: Data
  }

  static let index = "index.json"

  private let url: URL

  /// - Throws: ``AppError`` if the folder has files, but no earlier export.
  init(_ url: URL) throws {
    self.url = url
    let content = (try? FileManager.default.contentsOfDirectory(atPath: url.path)) ?? []
    guard content.isEmpty || Self.earlierIndex(in: url) != nil else {
      throw AppError(
        .conflict, "foreign-folder",
        "\(url.path) contains files that are not an export: choose an empty or a new folder.")
    }
  }

  /// Replaces the files of an earlier export. Leaves other files alone.
  func write(_ files: [File]) throws {
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    for name in earlierFiles { try? FileManager.default.removeItem(at: url.appending(path: name)) }
    for file in files { try file.bytes.write(to: url.appending(path: file.name)) }
  }

  /// Nil if the folder's index is missing, or comes from elsewhere.
  private static func earlierIndex(in url: URL) -> JSON.Object? {
    guard let bytes = try? Data(contentsOf: url.appending(path: index)),
      case .object(let index)? = try? JSON(parsing: bytes),
      ["baseUrl", "time", "user", "calls"].allSatisfy({ index[$0] != nil })
    else { return nil }
    return index
  }

  /// Only names that stay in the folder, whatever the index says.
  private var earlierFiles: [String] {
    guard case .array(let calls)? = Self.earlierIndex(in: url)?["calls"] else { return [] }
    return calls.compactMap { call in
      guard case .object(let members) = call, case .string(let name)? = members["file"], !name.contains("/"),
        !name.hasPrefix(".")
      else { return nil }
      return name
    }
  }
}

/// The contents of an export:
/// `{"baseUrl", "time", "user", "calls": [{"method", "path", "status", "file", "etag"?, "body"?}]}`. `time` is the time
/// by the service's clock, `user` the id of the user who called, `path` has the query, and `body` is the request's.
struct ExportIndex: JSONWritable {
  struct Entry: Sendable {
    let call: ExportedCall
    let eTag: String?
  }

  let baseURL: String
  let time: Timestamp
  let user: User.ID
  var entries: [Entry] = []

  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("baseUrl", baseURL)
      $0.member("time", time)
      $0.member("user", user)
      $0.member("calls", entries)
    }
  }
}

extension ExportIndex.Entry: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("method", call.method.rawValue)
      $0.member("path", call.path)
      $0.member("status", call.status)
      $0.member("file", call.file)
      if let eTag { $0.member("etag", eTag) }
      if let body = call.shownBody { $0.member("body") { $0.raw(body) } }
    }
  }
}

/// JSON with a line for each member and element, so that a diff of two texts shows what has changed. Keeps the order
/// and the spelling.
struct IndentedJSON {
  private var lines: [UInt8] = []
  private var depth = 0
  private var isInString = false
  private var isEscaped = false
  /// Whether the last byte has opened an object or array.
  private var hasOpened = false

  static func text(_ json: some Sequence<UInt8>) -> String {
    var text = IndentedJSON()
    for byte in json { text.add(byte) }
    return String(decoding: text.lines, as: UTF8.self) + "\n"
  }

  private mutating func add(_ byte: UInt8) {
    if isInString {
      lines.append(byte)
      isInString = isEscaped || byte != UInt8(ascii: "\"")
      isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
    } else if !" \n\r\t".utf8.contains(byte) {
      addToken(byte)
    }
  }

  private mutating func addToken(_ byte: UInt8) {
    let closes = "}]".utf8.contains(byte)
    if closes { depth -= 1 }
    // Nothing stands between the brackets of an empty object or array.
    if closes != hasOpened { addLineBreak() }
    hasOpened = false
    lines.append(byte)
    switch byte {
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      depth += 1
      hasOpened = true
    case UInt8(ascii: ","): addLineBreak()
    case UInt8(ascii: ":"): lines.append(UInt8(ascii: " "))
    case UInt8(ascii: "\""): isInString = true
    default: break
    }
  }

  private mutating func addLineBreak() {
    lines.append(UInt8(ascii: "\n"))
    lines += repeatElement(UInt8(ascii: " "), count: 2 * depth)
  }
}
