import CIDN2
import Foundation
import Postgres

/// An e-mail address in its one canonical form. Two addresses are one mailbox if and only if their keys have the same
/// bytes. Nothing else folds an address: the rules of locales and of Unicode make different mailboxes equal, such as
/// `gmail` and `gmaİl`.
///
/// The syntax is that of RFC 5321 and RFC 6531, without quoted names and addresses in brackets. Only a mail can tell
/// whether an address exists.
struct EmailAddress: Sendable, Hashable {
  /// The maximum length of ``text`` in characters.
  static let maximumLength = 254
  /// In bytes.
  private static let longestName = 64
  private static let longestLabel = 63
  private static let longestDomain = 253

  /// The form that is stored, shown and mailed: the name in NFC, as it was typed, and the domain as DNS has it.
  let text: String
  /// The form that is compared: the text with ASCII letters in lowercase. The column `email_key` has the same.
  let key: String

  /// Why a text is not an address, as a field's message.
  enum Fault: String, Error {
    case length = "must be 3 to 254 characters long"
    case form = "must be an e-mail address"
    case hyphen = "must not begin with a hyphen"
    case marks = "must not have more than 30 combining marks in a row"
    case compatibility = "must not contain variants of other characters, such as full-width letters, before the @"
    case domain = "must have a domain name that the rules for internationalized names (IDNA 2008) permit"
  }

  init(parsing raw: String) throws(Fault) {
    // In bytes, and before anything normalizes it.
    guard raw.utf8.count <= Self.maximumLength * String.maximumBytesOfComposed else { throw .length }
    guard !raw.hasLongRunOfMarks else { throw .marks }
    let scalars = raw.unicodeScalars
    guard let at = scalars.lastIndex(of: "@") else { throw scalars.count < 3 ? .length : .form }
    let name = try Self.name(String(scalars[..<at]))
    let text = "\(name)@\(try Self.domain(String(scalars[scalars.index(after: at)...])))"
    guard text.unicodeScalars.count <= Self.maximumLength else { throw .length }
    self.init(canonical: text)
  }

  /// - Parameter text: the text of an address that was parsed before.
  init(canonical text: String) {
    self.text = text
    key = text.lowercasedASCII
  }

  // MARK: The name

  /// Words separated by single dots, in NFC.
  private static func name(_ raw: String) throws(Fault) -> String {
    let name = raw.precomposedStringWithCanonicalMapping
    guard name.utf8.count <= longestName else { throw .length }
    // `sendmail` and its relatives would take it for an option.
    guard name.unicodeScalars.first != "-" else { throw .hyphen }
    guard name.unicodeScalars.allSatisfy(isAllowedInName),
      name.unicodeScalars.split(separator: ".", omittingEmptySubsequences: false).allSatisfy({ !$0.isEmpty })
    else { throw .form }
    // A mail server, or a person who looks at the address, may take such a character for the plain one.
    guard raw.isASCII || !hasVariants(raw, name) else { throw .compatibility }
    return name
  }

  /// Whether a name has a character that stands for others: by NFKC, or, like U+212A KELVIN SIGN, by NFC for one of
  /// ASCII.
  private static func hasVariants(_ raw: String, _ name: String) -> Bool {
    !name.precomposedStringWithCompatibilityMapping.hasSameBytes(as: name)
      || raw.unicodeScalars.contains { scalar in
        !scalar.isASCII && String(scalar).precomposedStringWithCanonicalMapping.isASCII
      }
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

  // MARK: The domain

  /// The ASCII form of a domain name, in lowercase.
  static func domain(_ raw: String) throws(Fault) -> String {
    // The library removes some characters of ASCII that a name must not have, so they are refused before.
    guard raw.unicodeScalars.allSatisfy({ !$0.isASCII || $0 == "." || isPlain($0) }) else { throw .form }
    let composed = raw.precomposedStringWithCanonicalMapping
    guard composed.unicodeScalars.count <= longestDomain else { throw .length }
    // Newer versions of UTS 46 map this letter to another one than older versions do.
    guard !composed.unicodeScalars.contains("\u{1e9e}") else { throw .domain }
    // With the second set of rules, the library removes characters of a text, but checks a name that is ASCII already.
    guard let domain = Self.ascii(composed, IDN2_NONTRANSITIONAL),
      Self.ascii(domain, IDN2_NONTRANSITIONAL, IDN2_USE_STD3_ASCII_RULES)?.hasSameBytes(as: domain) == true
    else { throw .domain }
    let labels = domain.unicodeScalars.split(separator: ".", omittingEmptySubsequences: false)
    // At least two. The last one is not a number, because that would be an IPv4 address.
    guard labels.count >= 2, labels.allSatisfy({ !$0.isEmpty }), let last = labels.last,
      !last.allSatisfy({ ("0"..."9").contains($0) })
    else { throw .form }
    guard labels.allSatisfy(isLabel) else { throw .domain }
    return domain
  }

  /// UTS 46 `toASCII` without transitional processing, by the tables of IDNA 2008. Nil if they refuse the name.
  private static func ascii(_ name: String, _ rules: idn2_flags...) -> String? {
    var result: UnsafeMutablePointer<CChar>?
    let status = idn2_to_ascii_8z(name, &result, rules.reduce(0) { $0 | CInt(bitPattern: $1.rawValue) })
    guard status == IDN2_OK.rawValue, let result else { return nil }
    defer { idn2_free(result) }
    return String(cString: result)
  }

  private static func isLabel(_ label: Substring.UnicodeScalarView) -> Bool {
    (1...longestLabel).contains(label.count) && label.first != "-" && label.last != "-"
      && label.allSatisfy { isPlain($0) && !("A"..."Z").contains($0) }
  }

  private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "a"..."z", "A"..."Z", "0"..."9", "-": true
    default: false
    }
  }
}

extension EmailAddress: SQLValue {
  static var sqlType: SQLType { String.sqlType }

  func encode(into bytes: inout [UInt8]) -> SQLEncoding { text.encode(into: &bytes) }

  /// Columns have canonical addresses only.
  init(cell: SQLCell) throws {
    self.init(canonical: try String(cell: cell))
  }
}

extension String {
  /// The text with ASCII letters in lowercase, as the database's `ascii_folded` makes it.
  var lowercasedASCII: String {
    String(decoding: utf8.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
  }
}

extension Fields.Rule where Value == EmailAddress {
  static var email: Self {
    Self(placeholder: EmailAddress(canonical: "")) { json throws(Fields.Broken) in
      guard case .string(let raw) = json else { throw Fields.Broken.wrongType("a string", json) }
      do throws(EmailAddress.Fault) {
        return try EmailAddress(parsing: String(raw.trimmedScalars))
      } catch {
        throw Fields.Broken(error == .length ? .wrongLength : .badFormat, error.rawValue)
      }
    }
  }
}

extension EmailAddress: JSONWritable {
  func write(to json: inout JSONWriter) { json.string(text) }
}
