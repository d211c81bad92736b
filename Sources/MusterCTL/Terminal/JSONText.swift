import Foundation
import MusterClient

/// Writes JSON that is safe to print: no character of it controls a terminal, whoever wrote the texts in it.
enum JSONText {
  /// - Parameter isIndented: false writes one line.
  static func of(_ value: JSONValue, isIndented: Bool = true) throws -> String {
    let encoder = JSONEncoder.muster()
    if isIndented { encoder.outputFormatting.insert(.prettyPrinted) }
    return escaped(String(decoding: try encoder.encode(value), as: UTF8.self))
  }

  /// The encoder escapes control characters below U+0020 only. All others that are not safe stand in strings, where
  /// an escape means the same.
  private static func escaped(_ json: String) -> String {
    json.unicodeScalars.reduce(into: "") { text, scalar in
      if scalar == "\n" || scalar.isSafe {
        text.unicodeScalars.append(scalar)
      } else {
        for unit in String(scalar).utf16 {
          let digits = String(unit, radix: 16)
          text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }
      }
    }
  }
}
