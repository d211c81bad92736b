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
  /// The statements that ``Migrator/up(notice:warning:)`` runs.
  public let up: String
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

  /// The tables, and columns as `table.column`, whose content the undoing part deletes, in its order.
  var losses: [Loss] {
    SQLScript.statements(of: down ?? "").flatMap { statement -> [Loss] in
      if let drop = statement.firstMatch(of: /(?i)^\s*DROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?([\w\s,.]+)$/) {
        return drop.1.split(separator: ",").compactMap { $0.split(whereSeparator: \.isWhitespace).first }.map {
          Loss(table: String($0))
        }
      }
      if let wipe = statement.firstMatch(of: /(?i)^\s*(?:DELETE\s+FROM|TRUNCATE(?:\s+TABLE)?)\s+([\w.]+)/) {
        return [Loss(table: String(wipe.1))]
      }
      guard let change = statement.firstMatch(of: /(?i)^\s*ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+)?(?:ONLY\s+)?([\w.]+)/)
      else { return [] }
      return statement.matches(of: /(?i)\bDROP\s+COLUMN\s+(?:IF\s+EXISTS\s+)?(\w+)/).map {
        Loss(table: String(change.1), column: String($0.1))
      }
    }
  }

  /// A table, or a column of one, that a script deletes.
  struct Loss: Hashable {
    let table: String
    var column: String?
    var name: String { column.map { "\(table).\($0)" } ?? table }
  }

  /// FNV-1a, 64 bits: enough to detect an edit.
  private static func fingerprint(_ text: String) -> String {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    let digits = String(hash, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}

/// Splits a script into statements, for messages only. The server does its own splitting when it runs a script.
enum SQLScript {
  /// The statements, without comments. A BEGIN ATOMIC body counts as several.
  static func statements(of script: String) -> [String] {
    var statements: [String] = []
    var rest = Substring(script)
    var current = ""
    func end() {
      if !current.allSatisfy(\.isWhitespace) { statements.append(current) }
      current = ""
    }
    while let character = rest.first {
      if character == ";" {
        end()
        rest.removeFirst()
      } else if let comment = comment(at: rest) {
        current += " "
        rest = rest[comment...]
      } else if let quoted = quoted(at: rest, after: current.last) {
        current += rest[..<quoted]
        rest = rest[quoted...]
      } else {
        current.append(character)
        rest.removeFirst()
      }
    }
    end()
    return statements
  }

  /// The start of a statement, on one line.
  static func summary(of statement: String) -> String {
    let line = statement.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    return line.count <= 80 ? line : line.prefix(77) + "..."
  }

  /// The end of the comment that begins here, if any.
  private static func comment(at text: Substring) -> String.Index? {
    if text.hasPrefix("--") { return text.firstIndex(where: \.isNewline) ?? text.endIndex }
    guard text.hasPrefix("/*") else { return nil }
    var depth = 0
    var rest = text
    while !rest.isEmpty {
      if rest.hasPrefix("/*") || rest.hasPrefix("*/") {
        depth += rest.first == "/" ? 1 : -1
        rest.removeFirst(2)
        if depth == 0 { break }
      } else {
        rest.removeFirst()
      }
    }
    return rest.startIndex
  }

  /// The end of the string, quoted name or dollar-quoted body that begins here, if any.
  ///
  /// - Parameter before: the preceding character. E'...' has escapes, and a dollar sign inside a name begins no quote.
  private static func quoted(at text: Substring, after before: Character?) -> String.Index? {
    guard let quote = text.first else { return nil }
    switch quote {
    case "'", "\"":
      var rest = text.dropFirst()
      while let character = rest.first {
        rest.removeFirst()
        if character == "\\", quote == "'", before == "E" || before == "e" { rest = rest.dropFirst() }
        // A doubled quote stands for itself. Parsing it as two adjacent strings gives the same end.
        if character == quote { break }
      }
      return rest.startIndex
    case "$" where before.map { !($0.isLetter || $0.isNumber || $0 == "_") } ?? true:
      guard let close = text.dropFirst().firstIndex(of: "$"),
        text[..<close].dropFirst().allSatisfy({ $0.isLetter || $0.isNumber || $0 == "_" })
      else { return nil }
      let tag = text[...close]
      return text[close...].dropFirst().firstRange(of: tag)?.upperBound ?? text.endIndex
    default: return nil
    }
  }
}
