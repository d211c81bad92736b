import Foundation

/// Rules for text. They limit a text's bytes and its runs of combining marks before anything normalizes, compares or
/// hashes it, because Swift and Foundation take quadratic time for a long run.
extension Fields.Rule where Value == String {
  /// Text with `length` characters (Unicode scalars), in NFC and trimmed of white space.
  static func text(_ length: ClosedRange<Int>) -> Self {
    Self(placeholder: "") { json throws(Fields.Broken) in
      guard case .string(let raw) = json else { throw Fields.Broken.wrongType("a string", json) }
      var text = String(raw.trimmedScalars)
      // ASCII is composed, and has no marks.
      if !text.isASCII {
        guard text.utf8.count <= length.upperBound * String.maximumBytesOfComposed else { throw miscounted(length) }
        guard !text.hasLongRunOfMarks else { throw Fields.Broken(.badFormat, String.markRule) }
        text = text.precomposedStringWithCanonicalMapping
      }
      guard length.contains(text.unicodeScalars.count) else { throw miscounted(length) }
      return text
    }
  }

  private static func miscounted(_ length: ClosedRange<Int>) -> Fields.Broken {
    let bound = length.lowerBound == 0 ? "at most" : "\(length.lowerBound) to"
    return Fields.Broken(.wrongLength, "must be \(bound) \(length.upperBound) characters long")
  }

  /// A single line of visible text: a name or a title, which mails and notifications quote.
  static func line(_ length: ClosedRange<Int>) -> Self {
    let isSingle = text(length).and("must be a single line, without control characters") {
      $0.unicodeScalars.allSatisfy {
        // In ASCII, all other characters are controls.
        $0.isASCII
          ? (0x20..<0x7f).contains($0.value)
          : ![.control, .lineSeparator, .paragraphSeparator].contains($0.properties.generalCategory)
      }
    }
    return Self(placeholder: isSingle.placeholder) { json throws(Fields.Broken) in
      let line = try isSingle.read(json)
      if let rule = line.visibilityRule { throw Fields.Broken(.badFormat, rule) }
      return line
    }
  }

  /// Text that is kept byte for byte, neither trimmed nor normalized.
  static func opaque(_ length: ClosedRange<Int>) -> Self {
    Self(placeholder: "") { json throws(Fields.Broken) in
      guard case .string(let text) = json else { throw Fields.Broken.wrongType("a string", json) }
      guard length.contains(text.utf8.count) else {
        throw Fields.Broken(.wrongLength, "must be \(length.lowerBound) to \(length.upperBound) bytes long")
      }
      return text
    }
  }
}

extension StringProtocol {
  /// The text without white space around it.
  var trimmedScalars: SubSequence {
    var scalars = unicodeScalars[...]
    while let first = scalars.first, first.isWhitespace { scalars.removeFirst() }
    while let last = scalars.last, last.isWhitespace { scalars.removeLast() }
    return self[scalars.startIndex..<scalars.endIndex]
  }

  /// Whether the text has more than 30 combining marks in a row, which no script needs. UAX #15's stream-safe text
  /// format has the same limit.
  var hasLongRunOfMarks: Bool {
    var run = 0
    for scalar in unicodeScalars {
      // There are no combining marks below U+0300.
      let isMark = scalar.value >= 0x300 && scalar.properties.canonicalCombiningClass != .notReordered
      run = isMark ? run + 1 : 0
      if run > 30 { return true }
    }
    return false
  }
}

extension String {
  static let markRule = "must not have more than 30 combining marks in a row"

  /// The maximum number of bytes that NFC composes into one character: up to four scalars of up to four bytes each.
  static let maximumBytesOfComposed = 16
}
