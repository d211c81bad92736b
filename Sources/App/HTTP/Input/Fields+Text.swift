import Foundation

/// The rules of text. Each bounds a text in bytes, and its runs of combining marks, before anything normalizes, compares
/// or hashes it: Swift and Foundation take quadratic time for a long run.
extension Fields.Rule where Value == String {
  /// Text of some characters (Unicode scalars) in NFC, without the white space around it.
  static func text(_ length: ClosedRange<Int>) -> Self {
    Self(placeholder: "") { json throws(Fields.Broken) in
      guard case .string(let raw) = json else { throw Fields.Broken("must be a string, not \(json.kind)") }
      let bound = length.lowerBound == 0 ? "at most" : "\(length.lowerBound) to"
      let miscounted = Fields.Broken("must have \(bound) \(length.upperBound) characters")
      let trimmed = raw.trimmedScalars
      guard trimmed.utf8.count <= length.upperBound * String.mostBytesOfComposed else { throw miscounted }
      guard !trimmed.hasLongRunOfMarks else { throw Fields.Broken(String.markRule) }
      let text = String(trimmed).precomposedStringWithCanonicalMapping
      guard length.contains(text.unicodeScalars.count) else { throw miscounted }
      return text
    }
  }

  /// Text in one line that shows something: a name or a title, which mails and notifications quote.
  static func line(_ length: ClosedRange<Int>) -> Self {
    let isSingle = text(length).and("must be a single line, without control characters") {
      $0.unicodeScalars.allSatisfy {
        ![.control, .lineSeparator, .paragraphSeparator].contains($0.properties.generalCategory)
      }
    }
    return isSingle.and("must be visible, without invisible characters and without controls of writing direction") {
      $0.isPlainlyVisible
    }
  }

  /// Text whose every byte counts: neither trimmed nor normalized.
  static func opaque(_ length: ClosedRange<Int>) -> Self {
    Self(placeholder: "") { json throws(Fields.Broken) in
      guard case .string(let text) = json else { throw Fields.Broken("must be a string, not \(json.kind)") }
      guard length.contains(text.utf8.count) else {
        throw Fields.Broken("must have \(length.lowerBound) to \(length.upperBound) bytes")
      }
      return text
    }
  }
}

extension StringProtocol {
  /// Without the white space around it.
  fileprivate var trimmedScalars: SubSequence {
    var scalars = unicodeScalars[...]
    while let first = scalars.first, first.properties.isWhitespace { scalars.removeFirst() }
    while let last = scalars.last, last.properties.isWhitespace { scalars.removeLast() }
    return self[scalars.startIndex..<scalars.endIndex]
  }

  /// Whether more than 30 combining marks follow one another, which no script does: UAX #15's stream-safe format.
  var hasLongRunOfMarks: Bool {
    var run = 0
    for scalar in unicodeScalars {
      // No character before U+0300 is one.
      let isMark = scalar.value >= 0x300 && scalar.properties.canonicalCombiningClass != .notReordered
      run = isMark ? run + 1 : 0
      if run > 30 { return true }
    }
    return false
  }
}

extension String {
  static let markRule = "must not have more than 30 combining marks in a row"

  /// What one character of NFC may have had before: up to four scalars of up to four bytes each.
  fileprivate static let mostBytesOfComposed = 16
}
