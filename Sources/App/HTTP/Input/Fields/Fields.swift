import Foundation

/// Reads the members of a JSON object and records every one that breaks its rule, so that a client sees all errors at
/// once:
///
///     let draft = try Fields.read(body) { fields in
///       Draft(title: fields.required("title", .text(1...200)), note: fields.optional("note", .text(0...2000)))
///     }
///
/// The readers of requests are generated: see ``Body``.
struct Fields {
  private let members: JSON.Object
  private let prefix: String
  private(set) var errors: [FieldError] = []
  /// Errors only if there are others: whether these fields are required depends on more than the request.
  private var possibleErrors: [FieldError] = []

  init(_ members: JSON.Object, prefix: String = "") {
    self.members = members
    self.prefix = prefix
  }

  /// - Throws: ``AppError`` with all invalid fields. The value that `body` has built from placeholders is discarded.
  static func read<Value>(_ json: JSON, _ body: (inout Fields) throws -> Value) throws -> Value {
    guard case .object(let members) = json else {
      throw AppError(.malformed, "malformed-body", "The body must be a JSON object, not \(json.kind).")
    }
    var fields = Fields(members)
    let value = try body(&fields)
    guard fields.errors.isEmpty else { throw AppError.invalid(fields.errors + fields.possibleErrors) }
    return value
  }

  mutating func required<Value>(_ name: String, _ rule: Rule<Value>) -> Value {
    guard let json = members[name], json != .null else {
      note(name, .required, "is required")
      return rule.placeholder
    }
    return read(name, json, rule)
  }

  /// Absent or null is nil. Here and below, the rule is made only for a member that is there: most members of a PATCH
  /// are absent.
  mutating func optional<Value>(_ name: String, _ rule: @autoclosure () -> Rule<Value>) -> Value? {
    guard let json = members[name], json != .null else { return nil }
    return read(name, json, rule())
  }

  /// A field of a PATCH that always has a value: absent keeps it, null is refused.
  mutating func edit<Value>(_ name: String, _ rule: @autoclosure () -> Rule<Value>) -> Edit<Value> {
    guard let json = members[name] else { return .keep }
    return .set(read(name, json, rule()))
  }

  /// A field of a PATCH that may be empty: absent keeps it, null clears it.
  mutating func clearableEdit<Value>(_ name: String, _ rule: @autoclosure () -> Rule<Value>) -> Edit<Value?> {
    guard let json = members[name] else { return .keep }
    return .set(json == .null ? nil : read(name, json, rule()))
  }

  /// Records an error for every member that is not one of `names`.
  mutating func allow(only names: [String], _ message: String) {
    for (name, _) in members where !names.contains(where: { $0.hasSameBytes(as: name) }) {
      note(name, .unknown, message)
    }
  }

  func hasError(in names: String...) -> Bool { hasError(in: names) }

  func hasError(in names: [String]) -> Bool {
    errors.contains { names.contains($0.field) }
  }

  mutating func note(_ name: String, _ code: FieldError.Code, _ message: String) {
    errors.append(FieldError(field: prefix + name, code: code, message: message))
  }

  /// Records that a field may be required.
  ///
  /// - Returns: the error if it is.
  mutating func noteMissing(_ name: String, _ message: String) -> AppError {
    let error = FieldError(field: prefix + name, code: .required, message: message)
    possibleErrors.append(error)
    return .invalid([error])
  }

  private mutating func read<Value>(_ name: String, _ json: JSON, _ rule: Rule<Value>) -> Value {
    do {
      return try rule.read(json)
    } catch {
      errors += error.errors(in: prefix + name)
      return rule.placeholder
    }
  }

  /// A member of a body, with its rule. The document has both: see ``Body``.
  struct Member<Value>: Sendable {
    let name: String
    let rule: @Sendable () -> Rule<Value>

    init(_ name: String, _ rule: @escaping @Sendable @autoclosure () -> Rule<Value>) {
      self.name = name
      self.rule = rule
    }
  }

  mutating func required<Value>(_ member: Member<Value>) -> Value { required(member.name, member.rule()) }

  mutating func optional<Value>(_ member: Member<Value>) -> Value? { optional(member.name, member.rule()) }

  /// A rule that turns a JSON value into a Swift value.
  struct Rule<Value> {
    /// Stands in for a value that broke the rule, until the errors are thrown.
    let placeholder: Value
    let read: (JSON) throws(Broken) -> Value
  }

  struct Broken: Error {
    /// Fields relative to the value: empty for the value itself, `.latitude` or `[3]` for a part of it.
    let errors: [FieldError]

    init(_ code: FieldError.Code, _ message: String) {
      errors = [FieldError(field: "", code: code, message: message)]
    }

    init(errors: [FieldError]) {
      self.errors = errors
    }

    static func wrongType(_ expected: String, _ json: JSON) -> Broken {
      Broken(.wrongType, "must be \(expected), not \(json.kind)")
    }

    /// The same errors for the field that has the value.
    func errors(in field: String) -> [FieldError] {
      errors.map { FieldError(field: field + $0.field, code: $0.code, message: $0.message) }
    }
  }
}
