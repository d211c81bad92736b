extension String {
  /// Whether it shows something, and nothing in it is hidden or turns what stands around it: the controls of writing
  /// direction and format, and the characters that Unicode has displays ignore, with which one name can be made to look
  /// like another.
  ///
  /// Joiners and variation selectors pass where scripts and emoji need them: behind a character that is not ASCII, or
  /// that has a form as an emoji.
  var isPlainlyVisible: Bool {
    var isVisible = false
    var previous: Unicode.Scalar?
    // The flags of England, Scotland and Wales are a black flag, a word in tags, and the tag that ends it.
    var tags = 0
    for scalar in unicodeScalars {
      if scalar.isTag {
        guard tags > 0 || previous?.value == 0x1f3f4 else { return false }
        tags += 1
        if scalar.value == 0xe007f {
          guard tags > 1 else { return false }
          tags = 0
        }
        guard tags <= Unicode.Scalar.mostTags else { return false }
      } else if tags > 0 {
        return false
      } else if scalar.isHidden {
        guard let before = previous, scalar.isJoining(behind: before) else { return false }
      } else if !scalar.isBlank {
        isVisible = true
      }
      previous = scalar
    }
    // A joiner that joins nothing is hidden, and so is a word in tags without an end.
    return isVisible && tags == 0 && previous?.isJoiner != true
  }
}

extension Unicode.Scalar {
  /// In a word: a country's two letters, and up to four of a part of it.
  fileprivate static let mostTags = 6

  fileprivate var isHidden: Bool {
    properties.generalCategory == .format || properties.isDefaultIgnorableCodePoint || properties.isBidiControl
  }

  /// White space, and what looks like it: U+2800 is a Braille cell without dots.
  fileprivate var isBlank: Bool { properties.isWhitespace || value == 0x2800 }

  fileprivate var isJoiner: Bool { value == 0x200c || value == 0x200d }

  private var isVariationSelector: Bool { (0xfe00...0xfe0f).contains(value) || (0xe0100...0xe01ef).contains(value) }

  fileprivate var isTag: Bool { (0xe0020...0xe007f).contains(value) }

  /// Whether this character, which shows nothing itself, belongs to the one before it.
  fileprivate func isJoining(behind before: Unicode.Scalar) -> Bool {
    if isJoiner { return !before.isASCII && !before.isBlank && (!before.isHidden || before.isVariationSelector) }
    guard isVariationSelector, !before.isHidden, !before.isBlank else { return false }
    return !before.isASCII || before.properties.isEmoji
  }
}
