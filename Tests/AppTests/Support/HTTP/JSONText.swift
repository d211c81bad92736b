/// A value of a request's body.
protocol JSONText {
  var asJSON: String { get }
}

/// The members of a JSON object, in order.
typealias Members = [(name: String, value: any JSONText)]

extension String: JSONText {
  /// Tests send no quotes and no backslashes in this way.
  var asJSON: String { "\"\(self)\"" }
}

extension Int: JSONText {
  var asJSON: String { String(self) }
}

extension Bool: JSONText {
  var asJSON: String { self ? "true" : "false" }
}

extension Optional: JSONText where Wrapped: JSONText {
  var asJSON: String { self?.asJSON ?? "null" }
}

extension Array: JSONText where Element: JSONText {
  var asJSON: String { "[\(map(\.asJSON).joined(separator: ", "))]" }
}

extension Dictionary: JSONText where Key == String, Value: JSONText {
  var asJSON: String { "{\(map { "\($0.asJSON): \($1.asJSON)" }.joined(separator: ", "))}" }
}

/// A JSON object.
func json(_ members: Members) -> String {
  "{\(members.map { "\($0.name.asJSON): \($0.value.asJSON)" }.joined(separator: ", "))}"
}
