/// Texts of other users, made safe for a terminal.
extension String {
  /// The text on one line, with each character that could control the terminal or hide text written as its code.
  var safeLine: String {
    reduce(into: "") { $0 += String.flags.contains($1) ? String($1) : $1.unicodeScalars.map(\.safe).joined() }
  }

  /// The lines of the text, each of them safe.
  var safeLines: [String] {
    split(omittingEmptySubsequences: false) { $0.isNewline }.map { String($0).safeLine }
  }

  /// England, Scotland and Wales: the only texts that need tags.
  private static let flags: Set<Character> = Set(
    ["gbeng", "gbsct", "gbwls"].map { region in
      let tags = region.unicodeScalars.compactMap { Unicode.Scalar(0xE0000 + $0.value) }
      return Character(String(String.UnicodeScalarView(["\u{1F3F4}"] + tags + ["\u{E007F}"])))
    })
}

extension Unicode.Scalar {
  /// Whether a terminal may print it. Control characters move the cursor, change colors or answer as if the user had
  /// typed; bidirectional controls reorder the text around them; tags and fillers hide text.
  var isSafe: Bool {
    switch properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator, .surrogate: false
    case .format: Unicode.Scalar.joiners.contains(self)
    default: !properties.isDefaultIgnorableCodePoint || Unicode.Scalar.styles.contains(value)
    }
  }

  /// Emoji and some scripts need them.
  private static let joiners: Set<Unicode.Scalar> = ["\u{200C}", "\u{200D}"]
  /// The variation selectors that choose between a symbol and an emoji, among others.
  private static let styles: ClosedRange<UInt32> = 0xFE00...0xFE0F

  fileprivate var safe: String {
    if isSafe { return String(self) }
    return self == "\t" ? " " : escaped(asASCII: true)
  }
}
