extension String {
  /// Whether the text has a visible character and no hidden ones. Text-direction controls, format controls, and
  /// characters that displays ignore according to Unicode count as hidden: with them, one name can be made to look like
  /// another.
  ///
  /// Joiners and variation selectors are allowed where scripts and emoji need them: after a character that is not ASCII
  /// or that has an emoji form.
  var isPlainlyVisible: Bool {
    var isVisible = false
    var previous: Unicode.Scalar?
    // The flags of England, Scotland and Wales consist of a black flag, a word in tag characters, and a tag that ends
    // it.
    var tags = 0
    for scalar in unicodeScalars {
      if scalar.isTag {
        guard tags > 0 || previous?.value == 0x1f3f4 else { return false }
        tags += 1
        if scalar.value == 0xe007f {
          guard tags > 1 else { return false }
          tags = 0
        }
        guard tags <= Unicode.Scalar.maximumTags else { return false }
      } else if tags > 0 {
        return false
      } else if scalar.isHidden {
        guard let before = previous, scalar.isJoining(behind: before) else { return false }
      } else if !scalar.isBlank {
        isVisible = true
      }
      previous = scalar
    }
    // A joiner that joins nothing is hidden. So is a word in tags without an end.
    return isVisible && tags == 0 && previous?.isJoiner != true
  }
}

extension Unicode.Scalar {
  /// The longest word in tags: two letters for a country, and up to four for a part of it.
  fileprivate static let maximumTags = 6

  fileprivate var isHidden: Bool {
    if isASCII { return false }
    return properties.generalCategory == .format || properties.isDefaultIgnorableCodePoint || properties.isBidiControl
  }

  /// White space, or U+2800, a Braille cell without dots.
  fileprivate var isBlank: Bool { isWhitespace || value == 0x2800 }

  /// Like `properties.isWhitespace`, without a table lookup for ASCII.
  var isWhitespace: Bool { isASCII ? value == 0x20 || (0x09...0x0d).contains(value) : properties.isWhitespace }

  fileprivate var isJoiner: Bool { value == 0x200c || value == 0x200d }

  private var isVariationSelector: Bool { (0xfe00...0xfe0f).contains(value) || (0xe0100...0xe01ef).contains(value) }

  fileprivate var isTag: Bool { (0xe0020...0xe007f).contains(value) }

  /// Whether this invisible character belongs to the one before it.
  fileprivate func isJoining(behind before: Unicode.Scalar) -> Bool {
    if isJoiner { return !before.isASCII && !before.isBlank && (!before.isHidden || before.isVariationSelector) }
    guard isVariationSelector, !before.isHidden, !before.isBlank else { return false }
    return !before.isASCII || before.properties.isEmoji
  }
}
