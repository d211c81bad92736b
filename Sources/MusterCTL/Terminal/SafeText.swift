/// Texts of other users, made safe for a terminal.
extension String {
  /// The text on one line, with each character that could control the terminal or hide text written as its code.
  var safeLine: String {
    String(unicodeScalars.reduce(into: String.UnicodeScalarView()) { $0 += $1.safe })
  }

  /// The lines of the text, each of them safe.
  var safeLines: [String] {
    split(omittingEmptySubsequences: false) { $0.isNewline }.map { String($0).safeLine }
  }
}

extension Unicode.Scalar {
  /// Whether a terminal may print it. Control characters move the cursor, change colors or answer as if the user had
  /// typed; bidirectional controls reorder the text around them.
  var isSafe: Bool {
    switch properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator, .surrogate: false
    case .format: Unicode.Scalar.needed.contains(self) || (0xE0020...0xE007F).contains(value)
    default: true
    }
  }

  /// The joiners, which emoji and some scripts need. So do flags the tags, U+E0020 to U+E007F.
  private static let needed: Set<Unicode.Scalar> = ["\u{200C}", "\u{200D}"]

  fileprivate var safe: String.UnicodeScalarView {
    if isSafe { return String.UnicodeScalarView([self]) }
    return (self == "\t" ? " " : escaped(asASCII: true)).unicodeScalars
  }
}
