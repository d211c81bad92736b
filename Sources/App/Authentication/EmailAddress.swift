extension Fields.Rule where Value == String {
  /// An address that a mail server could route. Only a mail can tell whether it exists.
  static var email: Self {
    text(3...254).and("must be an e-mail address") { EmailAddress.isRoutable($0) }
  }
}

/// The syntax of e-mail addresses in RFC 5321, without quoted names and addresses in brackets.
enum EmailAddress {
  private static let longestName = 64
  private static let longestLabel = 63

  static func isRoutable(_ text: String) -> Bool {
    let scalars = text.unicodeScalars
    guard let at = scalars.lastIndex(of: "@") else { return false }
    let (name, domain) = (scalars[..<at], scalars[scalars.index(after: at)...])
    return isName(name) && isDomain(domain)
  }

  /// Words separated by single dots.
  private static func isName(_ name: Substring.UnicodeScalarView) -> Bool {
    let bytes = name.reduce(0) { $0 + UTF8.width($1) }
    guard bytes <= longestName, name.allSatisfy(isAllowedInName) else { return false }
    return name.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { !$0.isEmpty }
  }

  /// At least two labels. The last one is not a number, because that would be an IPv4 address.
  private static func isDomain(_ domain: Substring.UnicodeScalarView) -> Bool {
    let labels = domain.split(separator: ".", omittingEmptySubsequences: false)
    guard labels.count >= 2, let last = labels.last, labels.allSatisfy(isLabel) else { return false }
    return !last.allSatisfy { ("0"..."9").contains($0) }
  }

  private static func isLabel(_ label: Substring.UnicodeScalarView) -> Bool {
    guard (1...longestLabel).contains(label.count), label.first != "-", label.last != "-" else { return false }
    return label.allSatisfy { scalar in
      switch scalar {
      case "a"..."z", "A"..."Z", "0"..."9", "-": true
      // A character of an internationalized name, which servers translate.
      default: !scalar.isASCII && (scalar.properties.isAlphabetic || isMarkOrDigit(scalar))
      }
    }
  }

  private static func isMarkOrDigit(_ scalar: Unicode.Scalar) -> Bool {
    [.nonspacingMark, .spacingMark, .decimalNumber].contains(scalar.properties.generalCategory)
  }

  /// Excludes characters that would make the address a list or a comment in a mail header.
  private static func isAllowedInName(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "@", ",", ";", ":", "<", ">", "(", ")", "[", "]", "\"", "\\": return false
    default:
      let properties = scalar.properties
      return !properties.isWhitespace && !properties.isDefaultIgnorableCodePoint
        && ![.control, .format, .surrogate, .privateUse, .unassigned].contains(properties.generalCategory)
    }
  }
}
