/// How many columns of a terminal a text takes.
enum DisplayWidth {
  /// The columns of a text without control characters.
  ///
  /// Terminals disagree about a few clusters, such as an old symbol in emoji style. This follows the newer ones.
  static func of(_ text: some StringProtocol) -> Int {
    text.reduce(0) { $0 + width(of: $1) }
  }

  /// Shortens a text that is wider than `columns`, and ends it with an ellipsis then.
  static func fit(_ text: String, within columns: Int) -> String {
    guard columns > 0 else { return "" }
    var kept = ""
    var used = 0
    var end = ""
    for character in text {
      used += width(of: character)
      if used > columns { return end.trimmingTrailingSpaces + "…" }
      kept.append(character)
      if used < columns { end = kept }
    }
    return text
  }

  private static func width(of character: Character) -> Int {
    // Most texts: letters of Latin, Greek and Cyrillic.
    if let only = character.unicodeScalars.first, only.value < 0x300, character.utf8.count <= 2 { return 1 }
    return isEmoji(character) ? 2 : character.unicodeScalars.reduce(0) { $0 + width(of: $1) }
  }

  private static func isEmoji(_ character: Character) -> Bool {
    guard let first = character.unicodeScalars.first else { return false }
    if first.properties.isEmojiPresentation { return !isHalfFlag(character) }
    let hasEmojiStyle = character.unicodeScalars.contains { $0 == "\u{FE0F}" }
    return first.properties.isEmoji && hasEmojiStyle
  }

  /// Half of a flag stands as a letter.
  private static func isHalfFlag(_ character: Character) -> Bool {
    guard let first = character.unicodeScalars.first else { return false }
    return (0x1F1E6...0x1F1FF).contains(first.value) && character.unicodeScalars.count == 1
  }

  private static func width(of scalar: Unicode.Scalar) -> Int {
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .control, .lineSeparator, .paragraphSeparator: return 0
    case .format: return scalar == "\u{AD}" ? 1 : 0
    default: break
    }
    if joiningHangul.contains(where: { $0.contains(scalar.value) }) { return 0 }
    return wide.contains { $0.contains(scalar.value) } ? 2 : 1
  }

  /// The vowels and final consonants of Hangul, which join the wide consonant before them.
  private static let joiningHangul: [ClosedRange<UInt32>] = [0x1160...0x11FF, 0xD7B0...0xD7FF]

  /// The ranges of Unicode's East_Asian_Width `W` and `F`, apart from emoji. Unassigned places in them count as wide.
  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115F, 0x2329...0x232A, 0x2E80...0x303E, 0x3041...0x3247, 0x3250...0x4DBF, 0x4E00...0xA4C6,
    0xA960...0xA97C, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6B, 0xFF01...0xFF60,
    0xFFE0...0xFFE6, 0x16FE0...0x18D08, 0x1AFF0...0x1B2FB, 0x1F200...0x1F265, 0x1F300...0x1F320, 0x20000...0x2FFFD,
    0x30000...0x3FFFD,
  ]
}

extension String {
  var trimmingTrailingSpaces: String {
    var text = Substring(self)
    while text.last == " " { text.removeLast() }
    return String(text)
  }
}

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
