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
