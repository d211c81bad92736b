import Foundation
import Hummingbird
import HummingbirdCore

/// Reads query parameters and records every one that breaks its rule, as ``Fields`` does for a body.
struct QueryFields {
  private let parameters: FlatDictionary<Substring, Substring>
  var errors: [FieldError] = []

  init(_ uri: URI) {
    parameters = uri.queryParameters
  }

  /// `?limit=` and `?cursor=`.
  mutating func page() -> PageRequest {
    var page = PageRequest()
    if let text = parameters["limit"] {
      if let limit = Int(text), PageRequest.limits.contains(limit) {
        page.limit = limit
      } else {
        errors.append(FieldError(field: "limit", message: "must be a whole number from 1 to 100"))
      }
    }
    if let text = parameters["cursor"] {
      page.cursor = Cursor(String(text))
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

  /// Text that follows the same rule as in a body: see ``Fields/Rule/text(_:)``.
  mutating func text(_ name: String, _ length: ClosedRange<Int>) -> String {
    guard let value = parameters[Substring(name)] else {
      errors.append(FieldError(field: name, message: "is required"))
      return ""
    }
    do {
      let text = try Fields.Rule<String>.text(length).read(.string(String(value)))
      if !text.utf8.contains(0) { return text }
      errors.append(FieldError(field: name, message: "must not contain U+0000"))
    } catch {
      errors += error.errors.map { FieldError(field: name, message: $0.message) }
    }
    return ""
  }

  /// A value in a special format; nil if it is absent or empty.
  ///
  /// - Parameter form: the error message for a value that cannot be parsed.
  mutating func parsed<Value>(_ name: String, _ form: String, _ parse: (String) -> Value?) -> Value? {
    guard let text = parameters[Substring(name)], !text.isEmpty else { return nil }
    let value = parse(String(text))
    if value == nil { errors.append(FieldError(field: name, message: form)) }
    return value
  }

  /// One of a few words; nil if it is absent.
  mutating func word<Word: RawRepresentable>(_ name: String, of words: [Word]) -> Word? where Word.RawValue == String {
    guard let text = parameters[Substring(name)] else { return nil }
    let word = words.first { $0.rawValue.hasSameBytes(as: String(text)) }
    if word == nil {
      let known = words.map(\.rawValue).joined(separator: ", ")
      errors.append(FieldError(field: name, message: "must be one of \(known)"))
    }
    return word
  }
}

extension FieldError {
  static let foreignCursor = FieldError(field: "cursor", message: "must be the nextCursor of a page of this list")
}
