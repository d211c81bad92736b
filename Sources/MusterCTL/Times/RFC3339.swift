import Foundation
import RegexBuilder

/// Times in the form of the API, such as `2026-05-01T18:00:00+02:00`.
enum RFC3339 {
  /// - Returns: nil if the text is not of this form, or has no offset.
  /// - Throws: if the text is of this form, but there is no such date.
  static func date(from text: String) throws -> Date? {
    let day = /[0-9]{4}-[0-9]{2}-[0-9]{2}/
    let clock = /((?:[01][0-9]|2[0-3]):[0-5][0-9])(:[0-5][0-9])?(?:\.[0-9]+)?/
    let form = Regex {
      Capture { day }
      /[Tt ]/
      clock
      Optionally(" ")
      Capture { /[Zz]|[+-][0-9]{2}:[0-9]{2}/ }
    }
    guard let match = text.wholeMatch(of: form) else { return nil }
    let style = Date.ISO8601FormatStyle()
    // The parser takes February 30 for March 2.
    guard let midnight = try? style.parse("\(match.1)T00:00:00Z"), style.format(midnight).hasPrefix(match.1),
      let date = try? style.parse("\(match.1)T\(match.2)\(match.3 ?? ":00")\(match.4.uppercased())")
    else { throw Failure.usage("\"\(text)\" is not a time.") }
    return date
  }
}
