import Foundation

/// The lines of an iCalendar object, folded as they must be.
struct ContentLines {
  /// Octets of a line, its end not counted.
  private static let width = 75

  private(set) var bytes: [UInt8] = []

  /// - Parameter line: without a line's end in it.
  mutating func add(_ line: String) {
    var rest = Array(line.utf8)[...]
    var room = Self.width
    while rest.count > room {
      var end = rest.startIndex + room
      // Not within the octets of one character.
      while rest[end] & 0b1100_0000 == 0b1000_0000 { end -= 1 }
      bytes += rest[..<end]
      bytes += "\r\n ".utf8
      rest = rest[end...]
      // The space counts.
      room = Self.width - 1
    }
    bytes += rest
    bytes += "\r\n".utf8
  }

  /// A property of type TEXT; none for an empty one. Whatever ends a line, in the eyes of any reader, is written as
  /// `\n`, so that no text can pass for a property; other control characters have no place in it.
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

  /// Text for a quoted parameter. There is no escaping that all readers know: what cannot stand in it is replaced.
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
