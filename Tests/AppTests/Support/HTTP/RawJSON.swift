@testable import App

/// Takes JSON apart without changing a byte. A parser forgets how a value was written.
enum RawJSON {
  struct Malformed: Error {
    let text: String
  }

  /// The members of an object, whose names need no escaping.
  static func members(of object: String) throws -> [String: String] {
    var members: [String: String] = [:]
    for part in try parts(of: object) {
      let pieces = part.dropFirst().split(separator: "\":", maxSplits: 1)
      guard part.hasPrefix("\""), pieces.count == 2, members[String(pieces[0])] == nil else {
        throw Malformed(text: object)
      }
      members[String(pieces[0])] = String(pieces[1])
    }
    return members
  }

  /// The elements of an array.
  static func elements(of array: String) throws -> [String] {
    try parts(of: array).map(String.init)
  }

  /// The texts in an array of strings without escapes.
  static func texts(in array: String) throws -> [String] {
    try elements(of: array).map(text)
  }

  /// The text of a string without escapes.
  static func text(_ string: String) throws -> String {
    guard string.count > 1, string.hasPrefix("\""), string.hasSuffix("\"") else { throw Malformed(text: string) }
    return String(string.dropFirst().dropLast())
  }

  /// The text between the outermost brackets, split at the commas.
  private static func parts(of text: String) throws -> [Substring] {
    let bytes = text.utf8
    var parts: [Substring] = []
    var (depth, start, place) = (0, bytes.startIndex, bytes.startIndex)
    var (isInString, isEscaped) = (false, false)
    while place < bytes.endIndex {
      let byte = bytes[place]
      let next = bytes.index(after: place)
      if isEscaped {
        isEscaped = false
      } else if isInString {
        if byte == UInt8(ascii: "\\") { isEscaped = true }
        if byte == UInt8(ascii: "\"") { isInString = false }
      } else {
        switch byte {
        case UInt8(ascii: "\""): isInString = true
        case UInt8(ascii: "["), UInt8(ascii: "{"):
          depth += 1
          if depth == 1 { start = next }
        case UInt8(ascii: "]"), UInt8(ascii: "}"):
          depth -= 1
          guard depth == 0 else { break }
          if start < place { parts.append(text[start..<place]) }
          guard next == bytes.endIndex else { throw Malformed(text: text) }
          return parts
        case UInt8(ascii: ",") where depth == 1:
          parts.append(text[start..<place])
          start = next
        default: break
        }
      }
      place = next
    }
    throw Malformed(text: text)
  }
}
