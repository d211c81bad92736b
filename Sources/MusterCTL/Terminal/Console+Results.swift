import MusterKit

/// Results of commands: JSON for scripts, or text for people.
extension Console {
  func show<Value>(_ reply: Reply<Value>, _ lines: (Value) throws -> [String]) throws {
    if printsJSON { return say(JSONText.of(reply.json)) }
    say(try lines(reply.value))
  }

  /// - Parameter line: a text that may have names in it.
  func show<Value>(_ reply: Reply<Value>, _ line: (Value) throws -> String) throws {
    try show(reply) { [try line($0).safeLine] }
  }

  /// Shows a list as a table. If the list is empty, says so on stderr.
  func show<Item>(_ reply: Reply<[Item]>, orNote empty: String, as table: ([Item]) throws -> Table) throws {
    if printsJSON { return say(JSONText.of(reply.json)) }
    guard !reply.value.isEmpty else { return note(empty) }
    say(try table(reply.value))
  }

  /// Names and values, one pair below the other. A value may have several lines.
  func lines(of fields: [(name: String, value: String)]) -> [String] {
    let width = fields.reduce(0) { max($0, $1.name.count) } + 2
    return fields.flatMap { field in
      field.value.safeLines.enumerated().map { index, line in
        let name = index == 0 ? field.name : ""
        return styled(name, .faint) + String(repeating: " ", count: width - name.count) + line
      }
    }
  }
}
