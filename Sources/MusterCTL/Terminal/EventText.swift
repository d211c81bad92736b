import Foundation
import MusterKit

/// An event, for people.
struct EventText {
  let event: Event
  var times = TimeText.here

  /// Such as `“Pasta night”, Fri 1 May 19:00`.
  var name: String { "“\(event.title)”, \(times.dayAndTime(event.startTime))" }

  var fields: [(name: String, value: String)] {
    var fields = [(name: "When", value: times.range(from: event.startTime, to: event.endTime))]
    if let there { fields.append(("There", there)) }
    if let place = event.location?.text { fields.append(("Where", place)) }
    if let url = event.url { fields.append(("Web", url.absoluteString)) }
    if !event.hosts.isEmpty {
      fields.append((event.hosts.count == 1 ? "Host" : "Hosts", event.hosts.map(\.fullName).joined(separator: ", ")))
    }
    fields.append(("You", event.status == .cancelled ? "cancelled" : event.myAnswer))
    if let counts = event.counts {
      fields.append(("Guests", counts.text + (event.capacity.map { " (\($0) places)" } ?? "")))
    }
    if event.maxPlusOnes > 0 { fields.append(("Plus-ones", "up to \(event.maxPlusOnes) for each guest")) }
    if let answerBy = event.answerBy { fields.append(("Answer by", times.dayAndTime(answerBy))) }
    if let note = event.note { fields.append(("Note", note)) }
    fields.append(("Id", event.id.description))
    return fields
  }

  /// The time at the event's place, if the clocks there show another.
  private var there: String? {
    guard let zone = TimeZone(identifier: event.timeZoneName),
      zone.secondsFromGMT(for: event.startTime) != times.zone.secondsFromGMT(for: event.startTime)
    else { return nil }
    let local = TimeText(now: times.now, zone: zone).range(from: event.startTime, to: event.endTime)
    return "\(local) (\(event.timeZoneName))"
  }
}

extension Event {
  /// The caller's answer, such as `going +2`.
  var myAnswer: String { myPlusOnes > 0 ? "\(myPart) +\(myPlusOnes)" : myPart }
}

extension Location {
  fileprivate var text: String {
    guard let latitude, let longitude else { return name }
    return "\(name) (\(latitude), \(longitude))"
  }
}

extension Console {
  /// An event, and the guests of the response.
  func lines(of event: Event) -> [String] {
    let lines = [styled(event.title.safeLine, .bold)] + lines(of: EventText(event: event).fields)
    guard let guests = event.participants, !guests.isEmpty else { return lines }
    return lines + [""] + Table.guests(guests).lines(within: columns, isColored: isColored)
  }
}

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

/// States of guests, for people.
extension GuestStatus {
  var text: String {
    switch self {
    case .waitlisted: "waiting"
    case .pending: "awaiting approval"
    default: rawValue
    }
  }

  var style: TextStyle {
    switch self {
    case .going: .green
    case .maybe, .waitlisted, .pending: .yellow
    case .declined: .red
    default: .plain
    }
  }
}

extension Event {
  /// The user's part in the event.
  fileprivate var myPart: String { myRole == .guest ? myStatus.text : "host" }
}

extension Counts {
  /// Such as `2 going, 1 maybe`.
  var text: String {
    let counts: [(Int, GuestStatus)] = [
      (going, .going), (maybe, .maybe), (waitlisted, .waitlisted), (pending, .pending), (invited, .invited),
      (declined, .declined),
    ]
    let shown = counts.filter { $0.0 > 0 }.map { "\($0) \($1.text)" }
    return shown.isEmpty ? "none" : shown.joined(separator: ", ")
  }
}
