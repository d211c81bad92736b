import Foundation
import MusterClient

/// Finds an event by its id, the beginning or end of the id, or a part of the title.
enum EventMatch {
  /// An id's part is at least so long; shorter texts are titles.
  private static let minimumIDPart = 4

  /// The events that a text may mean. An event whose whole title it is comes before all others.
  static func candidates(for text: String, in events: [Event]) -> [Event] {
    let wanted = folded(text)
    guard !wanted.isEmpty else { return [] }
    let exact = events.filter { folded($0.title) == wanted }
    if exact.count == 1 { return exact }
    let id = text.lowercased()
    return events.filter { event in
      let whole = event.id.uuidString.lowercased()
      let isPart = id.count >= minimumIDPart && (whole.hasPrefix(id) || whole.hasSuffix(id))
      return isPart || folded(event.title).contains(wanted)
    }
  }

  private static func folded(_ text: String) -> String {
    text.trimmingCharacters(in: .whitespaces)
      .folding(options: [.caseInsensitive, .diacriticInsensitive, .widthInsensitive], locale: nil)
  }
}
