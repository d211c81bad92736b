import Foundation

/// The words of a time, taken from the left.
struct PhraseWords {
  private var words: ArraySlice<String>

  init(_ text: String) {
    words =
      text.lowercased().split { $0.isWhitespace || $0 == "," }.map(String.init)
      .filter { !["at", "on", "the", "this"].contains($0) }[...]
  }

  var isEmpty: Bool { words.isEmpty }
  var next: String { words.first ?? "" }
  var rest: String { words.joined(separator: " ") }

  /// Takes the next word if there is one and `condition` holds for it.
  mutating func takeIf(_ condition: (String) -> Bool) -> String? {
    guard let word = words.first, condition(word) else { return nil }
    return words.removeFirst()
  }

  /// Takes the next word if it is a key of `values`, and returns its value.
  mutating func take<Value>(_ values: [String: Value]) -> Value? {
    takeIf { values[$0] != nil }.flatMap { values[$0] }
  }

  /// Takes the next words if `reading` returns a value; otherwise takes nothing.
  mutating func attempt<Value>(_ reading: (inout PhraseWords) throws -> Value?) rethrows -> Value? {
    var trial = self
    guard let value = try reading(&trial) else { return nil }
    self = trial
    return value
  }
}
