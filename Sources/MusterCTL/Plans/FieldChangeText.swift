import Foundation
import MusterKit

/// Changes of an event, for people, such as `time: Fri 1 May 19:00 → Fri 1 May 20:00`.
struct FieldChangeText {
  var times = TimeText.here

  func text(of changes: [FieldChange]) -> String {
    changes.map(text).joined(separator: "; ")
  }

  private func text(of change: FieldChange) -> String {
    let name = FieldChangeText.names[change.field] ?? change.field.rawValue
    // It may be long.
    if change.field == .note { return change.new == .null ? "no note" : "the note" }
    if let old = time(change.old), let new = time(change.new) { return "\(name): \(times.move(from: old, to: new))" }
    return "\(name): \(value(change.old)) → \(value(change.new))"
  }

  /// The differences between two states of an event, in the terms of a notification.
  static func changes(from old: Event, to new: Event) throws -> [FieldChange] {
    let (before, after) = (try JSONValue(encoding: old), try JSONValue(encoding: new))
    return EventField.known.compactMap { field in
      let change = FieldChange(
        new: after[field.rawValue] ?? .null, old: before[field.rawValue] ?? .null, field: field)
      return change.old == change.new ? nil : change
    }
  }

  private static let names: [EventField: String] = [
    .startTime: "time", .endTime: "end", .timeZone: "zone", .location: "place", .url: "web address",
    .maxPlusOnes: "plus-ones",
    .answerBy: "answers until",
  ]

  private func time(_ value: JSONValue) -> Date? {
    value.string.flatMap { try? RFC3339.date(from: $0) }
  }

  private func value(_ value: JSONValue) -> String {
    switch value {
    case .null: "none"
    case .string(let text): time(value).map(times.dayAndTime) ?? text
    case .integer(let number): "\(number)"
    case .object(let members): members["name"]?.string ?? "another"
    case .bool, .double, .array: "another"
    }
  }
}
