import Foundation
import MusterKit

/// Finds an event by its id, the beginning or end of the id, or a part of the title.
enum EventMatch {
  /// The minimum length of a partial id. Shorter texts are titles.
  private static let minimumIDPart = 4

  /// Seconds. An event without an end counts as over after this time.
  private static let usualLength = 6.0 * 3600

  /// The events that a text may mean. An event whose whole title it is comes before all others.
  static func candidates(for text: String, in events: [Event]) -> [Event] {
    let found = matches(for: text, in: events)
    let exact = found.filter { folded($0.title) == folded(text) }
    return exact.count == 1 ? exact : found
  }

  /// The events that a text may mean in a command that changes one: never a cancelled one, and one that is over only if
  /// all are.
  static func candidatesForChange(for text: String, in events: [Event], now: Date = Date()) -> [Event] {
    let open = matches(for: text, in: events).filter { $0.status != .cancelled }
    let coming = open.filter { ($0.endTime ?? $0.startTime.addingTimeInterval(usualLength)) > now }
    return candidates(for: text, in: coming.isEmpty ? open : coming)
  }

  private static func matches(for text: String, in events: [Event]) -> [Event] {
    let wanted = folded(text)
    guard !wanted.isEmpty else { return [] }
    let id = text.lowercased()
    return events.filter { event in
      let whole = event.id.description
      let isPart = id.count >= minimumIDPart && (whole.hasPrefix(id) || whole.hasSuffix(id))
      return isPart || folded(event.title).contains(wanted)
    }
  }

  private static func folded(_ text: String) -> String {
    text.trimmingCharacters(in: .whitespaces)
      .folding(options: [.caseInsensitive, .diacriticInsensitive, .widthInsensitive], locale: nil)
  }
}
