import Foundation

/// The lines of an iCalendar object, folded as RFC 5545 requires.
struct ContentLines {
  /// The maximum length of a line in octets, without its CRLF.
  private static let width = 75

  private(set) var bytes: [UInt8] = []

  /// - Parameter line: a line without line breaks.
  mutating func add(_ line: String) {
    var rest = Array(line.utf8)[...]
    var room = Self.width
    while rest.count > room {
      var end = rest.startIndex + room
      // Do not split a character.
      while rest[end] & 0b1100_0000 == 0b1000_0000 { end -= 1 }
      bytes += rest[..<end]
      bytes += "\r\n ".utf8
      rest = rest[end...]
      // The leading space of a continuation line counts.
      room = Self.width - 1
    }
    bytes += rest
    bytes += "\r\n".utf8
  }

  /// Adds a property of type TEXT, unless the text is empty. Every character that some reader takes for a line break is
  /// written as `\n`, so that no text can inject a property. Other control characters are removed.
  mutating func add(text: String, as name: String) {
    guard !text.isEmpty else { return }
    var escaped = "\(name):".unicodeScalars
    for scalar in text.replacing("\r\n", with: "\n").unicodeScalars {
      switch scalar {
      case "\\", ";", ",":
        escaped.append("\\")
        escaped.append(scalar)
      case "\t": escaped.append(scalar)
      case _ where Self.endsLine(scalar): escaped.append(contentsOf: "\\n".unicodeScalars)
      default: if scalar.properties.generalCategory != .control { escaped.append(scalar) }
      }
    }
    add(String(escaped))
  }

  /// The text for a quoted parameter. No escape sequence works in all readers, so unsafe characters are replaced.
  static func parameter(_ text: String) -> String {
    var plain = "".unicodeScalars
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": plain.append("'")
      case _ where endsLine(scalar) || scalar.properties.generalCategory == .control: plain.append(" ")
      default: plain.append(scalar)
      }
    }
    return String(plain)
  }

  private static func endsLine(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "\n", "\r", "\u{b}", "\u{c}", "\u{1c}", "\u{1d}", "\u{1e}", "\u{85}", "\u{2028}", "\u{2029}": true
    default: false
    }
  }
}
