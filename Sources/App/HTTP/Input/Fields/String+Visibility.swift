extension String {
  /// Why the text is not fit for a name or a title, as a rule that it breaks; nil if it is fit. It needs a visible
  /// character, and must have no hidden ones: with them, one name can be made to look like another.
  ///
  /// Text-direction controls, format controls, and characters that displays ignore according to Unicode count as
  /// hidden, except where a script or an emoji needs them: see ``Unicode/Scalar/isNeeded(after:before:inRightToLeft:)``.
  var visibilityRule: String? {
    guard !isPlain else { return nil }
    var isVisible = false
    var previous: Unicode.Scalar?
    var flag = Flag()
    let scalars = unicodeScalars
    let isRightToLeft = scalars.contains(where: \.isRightToLeft)
    for place in scalars.indices {
      let scalar = scalars[place]
      if scalar.isTag || flag.isOpen {
        guard flag.take(scalar, after: previous) else { return scalar.isTag ? scalar.hiddenRule : Flag.rule }
      } else if scalar.isHidden {
        let next = scalars.index(after: place)
        let following = next < scalars.endIndex ? scalars[next] : nil
        guard let before = previous ?? (scalar.isDirectionMark ? " " : nil),
          scalar.isNeeded(after: before, before: following, inRightToLeft: isRightToLeft)
        else { return scalar.hiddenRule }
      } else if !scalar.isBlank {
        isVisible = true
      }
      previous = scalar
    }
    guard !flag.isOpen else { return Flag.rule }
    return isVisible ? nil : "must contain a visible character"
  }

  /// Whether all characters are printable ASCII, and one is visible: nearly all texts are.
  private var isPlain: Bool { isASCII && utf8.contains { $0 > 0x20 } }
}

/// The flags of England, Scotland and Wales consist of a black flag, a word in tag characters, and a tag that ends it.
private struct Flag {
  static let rule = "must not contain a flag that is cut off"
  /// The longest word in tags: two letters for a country, and up to four for a part of it.
  private static let maximumTags = 6
  private static let end: UInt32 = 0xe007f

  private var tags = 0

  var isOpen: Bool { tags > 0 }

  /// - Returns: false if the scalar cannot follow.
  mutating func take(_ scalar: Unicode.Scalar, after previous: Unicode.Scalar?) -> Bool {
    guard scalar.isTag, isOpen || previous?.value == 0x1f3f4 else { return false }
    tags += 1
    if scalar.value == Self.end {
      guard tags > 1 else { return false }
      tags = 0
    }
    return tags <= Self.maximumTags
  }
}

extension Unicode.Scalar {
  /// White space, or U+2800, a Braille cell without dots.
  fileprivate var isBlank: Bool { isWhitespace || value == 0x2800 }

  /// Like `properties.isWhitespace`, without a table lookup for ASCII.
  var isWhitespace: Bool { isASCII ? value == 0x20 || (0x09...0x0d).contains(value) : properties.isWhitespace }

  fileprivate var isTag: Bool { (0xe0020...0xe007f).contains(value) }

  fileprivate var isHidden: Bool {
    if isASCII { return false }
    if properties.isDefaultIgnorableCodePoint || properties.isBidiControl { return true }
    return properties.generalCategory == .format && !isSignAboveNumbers
  }

  /// Signs of Arabic, Syriac and Kaithi that enclose the digits behind them. They are visible format characters.
  private var isSignAboveNumbers: Bool {
    switch value {
    case 0x600...0x605, 0x6dd, 0x70f, 0x890, 0x891, 0x8e2, 0x110bd, 0x110cd: true
    default: false
    }
  }

  private var isVisible: Bool { !isHidden && !isBlank }

  /// The rule that a hidden character breaks. It names the character, because no one can see it.
  fileprivate var hiddenRule: String {
    let digits = String(value, radix: 16, uppercase: true)
    let name = "U+" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    return properties.isBidiControl
      ? "must not contain the text-direction character \(name) here"
      : "must not contain the invisible character \(name) here"
  }

  /// Whether a script or an emoji needs this hidden character at this place.
  ///
  /// - Parameters:
  ///   - isRightToLeft: whether the text has a letter that is written from right to left.
  fileprivate func isNeeded(
    after before: Unicode.Scalar, before next: Unicode.Scalar?, inRightToLeft isRightToLeft: Bool
  ) -> Bool {
    switch value {
    case 0x200c, 0x200d: isJoining(before, next)
    case 0x200b: isDividing(before, next)
    case 0x180b...0x180f: isShapingMongolian(before, next)
    case _ where isVariationSelector: before.hasVariations(next)
    case _ where isDirectionMark: isRightToLeft && isDirecting(before, next)
    default: false
    }
  }

  // MARK: Joiners

  /// Between two characters, one from a script that joins letters, or parts of an emoji. Also at the end, a joiner
  /// shapes a consonant with a virama, as in Malayalam's chillus, and ZWJ an Arabic letter.
  private func isJoining(_ before: Unicode.Scalar, _ next: Unicode.Scalar?) -> Bool {
    if before.properties.canonicalCombiningClass == .virama || before.isMongolianSelector { return true }
    if value == 0x200d, before.isCursive { return true }
    guard let next, next.isVisible else { return false }
    if value == 0x200d, before.isEmojiPart, next.isPictogram { return true }
    return before.isVisible && (before.joinsLetters || next.joinsLetters)
  }

  /// Whether the character's script uses joiners: those from Hebrew to Myanmar, from the Philippines' to Lepcha, and
  /// their neighbors and relatives.
  private var joinsLetters: Bool {
    switch value {
    case 0x590...0x109f, 0x1700...0x1c7f, 0x1cc0...0x1cff, 0xa800...0xaaff, 0xabc0...0xabff, 0xfb1d...0xfdff,
      0xfe70...0xfefc, 0x10800...0x11fff, 0x1e900...0x1e95f:
      true
    default: false
    }
  }

  /// A letter of Arabic, Syriac, Mandaic, N'Ko, Mongolian or Adlam, whose form depends on its neighbors.
  private var isCursive: Bool {
    switch value {
    case 0x620...0x74f, 0x750...0x77f, 0x7ca...0x7ea, 0x840...0x8ff, 0x1820...0x18aa, 0x1e900...0x1e943:
      properties.isAlphabetic
    default: false
    }
  }

  // MARK: Emoji

  private var isPictogram: Bool { !isASCII && (properties.isEmoji || (0x1f000...0x1faff).contains(value)) }

  /// A pictogram, or its color of skin or its variation selector.
  private var isEmojiPart: Bool { isPictogram || value == 0xfe0f }

  private var isVariationSelector: Bool { (0xfe00...0xfe0f).contains(value) || (0xe0100...0xe01ef).contains(value) }

  /// Whether a variation selector can follow: behind ideographs, symbols and emoji, letters of scripts without capitals,
  /// and what a keycap encloses.
  private func hasVariations(_ next: Unicode.Scalar?) -> Bool {
    if isASCII { return properties.isEmoji && next?.value == 0x20e3 }
    if properties.isEmoji { return true }
    return isVisible && !properties.isCased && properties.canonicalCombiningClass == .notReordered
  }

  // MARK: Spaces without width

  /// A place where a line may break, in a script without spaces. Khmer and Lao need it, others use it.
  private func isDividing(_ before: Unicode.Scalar, _ next: Unicode.Scalar?) -> Bool {
    guard let next, !before.isHidden, !next.isHidden else { return false }
    return before.isWrittenWithoutSpaces || next.isWrittenWithoutSpaces && !before.isBlank
  }

  /// Thai, Lao, Tibetan, Myanmar, Khmer, the scripts of the Tai, Javanese, Balinese and Cham.
  private var isWrittenWithoutSpaces: Bool {
    switch value {
    case 0xe00...0x109f, 0x1780...0x17ff, 0x1950...0x19ff, 0x1a20...0x1aaf, 0x1b00...0x1b7f, 0xa980...0xaa7f,
      0xaa80...0xaadf:
      true
    default: false
    }
  }

  // MARK: Mongolian

  private var isMongolianSelector: Bool { (0x180b...0x180d).contains(value) || value == 0x180f }

  private var isMongolian: Bool { (0x1820...0x18aa).contains(value) }

  /// A free variation selector, behind a letter, or the vowel separator, between two letters.
  private func isShapingMongolian(_ before: Unicode.Scalar, _ next: Unicode.Scalar?) -> Bool {
    if isMongolianSelector { return before.isMongolian || before.value == 0x180e }
    return (before.isMongolian || before.isMongolianSelector) && next?.isMongolian == true
  }

  // MARK: Direction

  /// U+200E, U+200F and U+061C, which put punctuation and numbers into place. The others can turn text around.
  fileprivate var isDirectionMark: Bool { value == 0x200e || value == 0x200f || value == 0x61c }

  /// A letter of Hebrew, Arabic and their relatives.
  fileprivate var isRightToLeft: Bool {
    switch value {
    case 0x590...0x8ff, 0xfb1d...0xfdff, 0xfe70...0xfefc, 0x10800...0x10fff, 0x1e800...0x1eeff:
      properties.isAlphabetic
    default: false
    }
  }

  /// Where a mark can have an effect: not behind another one, and not between two letters that go from left to right.
  private func isDirecting(_ before: Unicode.Scalar, _ next: Unicode.Scalar?) -> Bool {
    guard !before.isHidden, next?.isHidden != true else { return false }
    func goesRight(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.isAlphabetic && !scalar.isRightToLeft }
    return !(goesRight(before) && next.map(goesRight) ?? false)
  }
}
