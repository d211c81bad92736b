extension String {
  /// Whether it shows something, and nothing in it is hidden or turns what stands around it: the controls of writing
  /// direction, and the characters that Unicode has displays ignore, with which one name can be made to look like another.
  ///
  /// Joiners and variation selectors pass where scripts and emoji need them: behind a character that is not ASCII, or
  /// that has a form as an emoji.
  var isPlainlyVisible: Bool {
    var isVisible = false
    var previous: Unicode.Scalar?
    for scalar in unicodeScalars {
      if scalar.isHidden {
        guard let before = previous, scalar.isJoining(behind: before) else { return false }
      } else if !scalar.isBlank {
        isVisible = true
      }
      previous = scalar
    }
    // A joiner that joins nothing is hidden.
    return isVisible && previous?.isJoiner != true
  }
}

extension Unicode.Scalar {
  fileprivate var isHidden: Bool { properties.isDefaultIgnorableCodePoint || properties.isBidiControl }

  /// White space, and what looks like it: U+2800 is a Braille cell without dots.
  fileprivate var isBlank: Bool { properties.isWhitespace || value == 0x2800 }

  fileprivate var isJoiner: Bool { value == 0x200c || value == 0x200d }

  private var isVariationSelector: Bool { (0xfe00...0xfe0f).contains(value) || (0xe0100...0xe01ef).contains(value) }

  private var isTag: Bool { (0xe0020...0xe007f).contains(value) }

  /// Whether this character, which shows nothing itself, belongs to the one before it.
  fileprivate func isJoining(behind before: Unicode.Scalar) -> Bool {
    // The flags of England, Scotland and Wales are a black flag and a word in tags.
    if isTag { return before.value == 0x1f3f4 || before.isTag }
    if isJoiner { return !before.isASCII && !before.isBlank && (!before.isHidden || before.isVariationSelector) }
    guard isVariationSelector, !before.isHidden, !before.isBlank else { return false }
    return !before.isASCII || before.properties.isEmoji
  }
}
