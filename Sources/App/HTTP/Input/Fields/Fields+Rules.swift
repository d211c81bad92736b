import Foundation
import Postgres

extension Fields.Rule {
  /// Adds a condition to this rule.
  func and(
    _ message: String, code: FieldError.Code = .badFormat, _ isValid: @escaping (Value) -> Bool
  ) -> Fields.Rule<Value> {
    Fields.Rule(placeholder: placeholder) { json throws(Fields.Broken) in
      let value = try read(json)
      guard isValid(value) else { throw Fields.Broken(code, message) }
      return value
    }
  }
}

extension Fields.Rule where Value == Bool {
  static var flag: Self {
    Self(placeholder: false) { json throws(Fields.Broken) in
      guard case .bool(let value) = json else { throw Fields.Broken.wrongType("true or false", json) }
      return value
    }
  }
}

extension Fields.Rule {
  /// In characters. Longer numbers are refused, because they are expensive to parse.
  fileprivate static var longestNumber: Int { 64 }
}

extension Fields.Rule where Value == Int {
  /// A whole number. As in JSON Schema, `5.0` is also one.
  static func integer(_ range: ClosedRange<Int>) -> Self {
    Self(placeholder: range.lowerBound) { json throws(Fields.Broken) in
      guard case .number(let digits) = json else { throw Fields.Broken.wrongType("a number", json) }
      guard digits.utf8.count <= Self.longestNumber,
        let number = Int(digits) ?? Double(digits).flatMap({ Int(exactly: $0) }), range.contains(number)
      else {
        throw Fields.Broken(.outOfRange, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
      }
      return number
    }
  }
}

extension Fields.Rule where Value == Double {
  static func number(_ range: ClosedRange<Double>) -> Self {
    Self(placeholder: range.lowerBound) { json throws(Fields.Broken) in
      guard case .number(let digits) = json else { throw Fields.Broken.wrongType("a number", json) }
      guard digits.utf8.count <= Self.longestNumber, let number = Double(digits), range.contains(number) else {
        throw Fields.Broken(.outOfRange, "must be a number from \(range.lowerBound) to \(range.upperBound)")
      }
      return number
    }
  }
}

extension Fields.Rule where Value == Timestamp {
  /// RFC 3339 with any offset, cut to whole seconds.
  static var time: Self {
    Self(placeholder: Timestamp(microseconds: 0)) { json throws(Fields.Broken) in
      guard case .string(let text) = json else { throw Fields.Broken.wrongType("a string", json) }
      guard let time = Timestamp(rfc3339: text), time.microseconds >= 0,
        Timestamp.years1To9999.contains(time.microseconds)
      else {
        throw Fields.Broken(.badFormat, "must be a time like 2026-05-01T18:00:00Z, in or after 1970")
      }
      return Timestamp(microseconds: time.microseconds / 1_000_000 * 1_000_000)
    }
  }
}

extension Fields.Rule where Value == Timestamp {
  /// RFC 3339 with any offset, to the microsecond. A coarser time stands for the last microsecond that it covers.
  static var moment: Self {
    Self(placeholder: Timestamp(microseconds: 0)) { json throws(Fields.Broken) in
      guard case .string(let text) = json else { throw Fields.Broken.wrongType("a string", json) }
      var digits = 0
      guard let time = Timestamp(rfc3339: text, fractionDigits: &digits), time.microseconds >= 0,
        Timestamp.years1To9999.contains(time.microseconds)
      else {
        throw Fields.Broken(.badFormat, "must be a time like 2026-05-01T18:00:00.123456Z, in or after 1970")
      }
      let unit = (min(digits, 6)..<6).reduce(1 as Int64) { unit, _ in unit * 10 }
      return Timestamp(microseconds: time.microseconds + unit - 1)
    }
  }
}

extension Fields.Rule {
  static func id<Thing>() -> Self where Value == Identifier<Thing> {
    Self(placeholder: Identifier.new()) { json throws(Fields.Broken) in
      guard case .string(let text) = json, let id = Identifier<Thing>(text) else {
        throw Fields.Broken(.badFormat, "must be a UUID")
      }
      return id
    }
  }

  /// An id that the client makes.
  static func newID<Thing>() -> Self where Value == Identifier<Thing> {
    Self.id().and("must be a UUID of version 7") { $0.isVersion7 }
  }

  /// One of the words of an enumeration.
  static func word(of words: [Value]) -> Self where Value: RawRepresentable & Sendable, Value.RawValue == String {
    Self(placeholder: words[0]) { json throws(Fields.Broken) in
      guard case .string(let text) = json, let word = words.first(where: { $0.rawValue.hasSameBytes(as: text) })
      else {
        throw Fields.Broken(.notAllowed, "must be one of " + words.map(\.rawValue).joined(separator: ", "))
      }
      return word
    }
  }

  static func list<Element>(of rule: Fields.Rule<Element>, atMost limit: Int) -> Self where Value == [Element] {
    Self(placeholder: []) { json throws(Fields.Broken) in
      guard case .array(let elements) = json else { throw Fields.Broken.wrongType("an array", json) }
      guard elements.count <= limit else { throw Fields.Broken(.outOfRange, "must have at most \(limit) elements") }
      var values: [Element] = []
      var errors: [FieldError] = []
      for (index, element) in elements.enumerated() {
        do throws(Fields.Broken) {
          values.append(try rule.read(element))
        } catch {
          errors += error.errors(in: "[\(index)]")
        }
      }
      guard errors.isEmpty else { throw Fields.Broken(errors: errors) }
      return values
    }
  }

  /// An object with fields of its own.
  static func object(_ placeholder: Value, _ body: @escaping (inout Fields) -> Value) -> Self {
    Self(placeholder: placeholder) { json throws(Fields.Broken) in
      guard case .object(let members) = json else { throw Fields.Broken.wrongType("an object", json) }
      var fields = Fields(members, prefix: ".")
      let value = body(&fields)
      guard fields.errors.isEmpty else { throw Fields.Broken(errors: fields.errors) }
      return value
    }
  }
}
