import Foundation

/// One migration file: plain SQL, applied once, in the order of the names.
///
/// Three comment lines have a meaning. `-- down` begins the part that undoes the migration. `-- no-transaction` marks a
/// file with one statement that cannot run in a transaction, such as CREATE INDEX CONCURRENTLY. `-- breaking` says that
/// programs that do not know this migration must not run on the migrated database.
public struct Migration: Sendable {
  /// The digits before the first underscore, such as `0001`.
  public let version: String
  /// The file name without its extension.
  public let name: String
  let up: String
  let down: String?
  let isTransactional: Bool
  let isBreaking: Bool
  /// Covers every byte of the file, because an applied migration must never change.
  public let checksum: String

  /// - Parameters:
  ///   - fileName: such as `0001_users.sql`.
  ///   - text: the content of the file.
  public init(fileName: String, text: String) {
    name = fileName.hasSuffix(".sql") ? String(fileName.dropLast(4)) : fileName
    version = String(name.prefix { $0 != "_" })
    // A line may end in CR LF or in trailing spaces.
    var lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    func line(of comment: String) -> Int? {
      lines.firstIndex { $0.hasPrefix(comment) && $0.dropFirst(comment.count).allSatisfy(\.isWhitespace) }
    }
    isTransactional = line(of: "-- no-transaction") == nil
    isBreaking = line(of: "-- breaking") != nil
    var undo: String?
    if let divider = line(of: "-- down") {
      undo = lines[(divider + 1)...].joined(separator: "\n")
      lines = Array(lines[..<divider])
    }
    up = lines.joined(separator: "\n")
    down = undo
    checksum = Self.fingerprint(text)
  }

  /// FNV-1a, 64 bits: enough to detect an edit.
  private static func fingerprint(_ text: String) -> String {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    let digits = String(hash, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}
