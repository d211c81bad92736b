import Foundation
import HTTPServer

/// Reads query parameters and records every one that breaks its rule, as ``Fields`` does for a body. A parameter that
/// nothing reads, or that is given twice, is also an error.
struct QueryFields {
  private let parameters: [(name: String, value: String)]
  private var known: [String] = []
  private(set) var errors: [FieldError] = []

  /// A request with more strays does not get a longer error.
  private static let maximumStrays = 10

  init(_ uri: URI) {
    parameters = uri.queryParameters
  }

  /// `?limit=` and `?cursor=`.
  mutating func page() -> PageRequest {
    var page = PageRequest()
    if let text = value("limit") {
      if let limit = Int(text), PageRequest.limits.contains(limit) {
        page.limit = limit
      } else {
        let (least, most) = (PageRequest.limits.lowerBound, PageRequest.limits.upperBound)
        note("limit", .outOfRange, "must be a whole number from \(least) to \(most)")
      }
    }
    if let text = value("cursor") {
      page.cursor = Cursor(text)
      if page.cursor == nil { errors.append(.foreignCursor) }
    }
    return page
  }

  /// `?limit=` of a list that has one page and no cursor.
  mutating func onlyPage() -> Int {
    let asked = page()
    if asked.cursor != nil { errors.append(.foreignCursor) }
    return asked.limit
  }

  /// `?ids=`: comma-separated ids of the wanted items, at most a page. Nil if it is absent. Filters and pages may
  /// not be asked for then.
  mutating func ids<Thing>() -> [Identifier<Thing>]? {
    guard let text = value("ids") else { return nil }
    let texts = text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
    guard texts.count <= PageRequest.limits.upperBound else {
      note("ids", .outOfRange, "must have at most \(PageRequest.limits.upperBound) ids")
      return []
    }
    let ids = texts.compactMap { Identifier<Thing>(String(decoding: $0, as: UTF8.self)) }
    if ids.count < texts.count { note("ids", .badFormat, "must be comma-separated UUIDs") }
    return ids
  }

  /// Text that follows the same rule as in a body: see ``Fields/Rule/text(_:)``.
  mutating func text(_ name: String, _ length: ClosedRange<Int>) -> String {
    guard let value = value(name) else {
      note(name, .required, "is required")
      return ""
    }
    do {
      let text = try Fields.Rule<String>.text(length).read(.string(value))
      if !text.utf8.contains(0) { return text }
      note(name, .badFormat, "must not contain U+0000")
    } catch {
      errors += error.errors(in: name)
    }
    return ""
  }

  /// A value in a special format; nil if it is absent or empty.
  ///
  /// - Parameter form: the error message for a value that cannot be parsed.
  mutating func parsed<Value>(_ name: String, _ form: String, _ parse: (String) -> Value?) -> Value? {
    guard let text = value(name), !text.isEmpty else { return nil }
    let value = parse(text)
    if value == nil { note(name, .badFormat, form) }
    return value
  }

  /// One of a few words; nil if it is absent.
  mutating func word<Word: RawRepresentable>(_ name: String, of words: [Word]) -> Word? where Word.RawValue == String {
    guard let text = value(name) else { return nil }
    let word = words.first { $0.rawValue.hasSameBytes(as: text) }
    if word == nil { note(name, .notAllowed, "must be one of " + words.map(\.rawValue).joined(separator: ", ")) }
    return word
  }

  /// A comma-separated list of words, out of a few; empty if it is absent, nil if it has other words or one twice.
  mutating func words<Word: RawRepresentable>(_ name: String, of words: [Word]) -> [Word]?
  where Word.RawValue == String {
    guard let text = value(name) else { return [] }
    // More parts than words cannot be right.
    let parts = text.utf8.split(
      separator: UInt8(ascii: ","), maxSplits: words.count, omittingEmptySubsequences: false)
    let found = words.filter { word in parts.contains { $0.elementsEqual(word.rawValue.utf8) } }
    return found.count < parts.count ? nil : found
  }

  /// Records an error for every parameter that was not read so far.
  mutating func refuseStrays() {
    let known = known
    let strays = parameters.lazy.map(\.name).filter { name in
      !known.contains { $0.hasSameBytes(as: name) }
    }
    for name in strays.prefix(Self.maximumStrays) {
      note(String(decoding: name.utf8.prefix(100), as: UTF8.self), .unknown, "is not a parameter of this request")
    }
  }

  private mutating func value(_ name: String) -> String? {
    known.append(name)
    let values = parameters.filter { name.hasSameBytes(as: $0.name) }
    if values.count > 1 { note(name, .repeated, "must be given only once") }
    return values.first?.value
  }

  mutating func note(_ name: String, _ code: FieldError.Code, _ message: String) {
    errors.append(FieldError(field: name, code: code, message: message))
  }
}

extension FieldError {
  static let foreignCursor = FieldError(
    field: "cursor", code: .badFormat, message: "must be the nextCursor of a page of this list")
}
