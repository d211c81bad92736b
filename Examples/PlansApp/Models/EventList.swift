import Foundation
import MusterKit

/// The user's events, even without a network.
@MainActor struct EventList {
  struct Row: Identifiable, Hashable {
    let event: Event
    let time: EventTime
    /// Whether a change of the user's is not sent yet.
    let isPending: Bool
    var id: Event.ID { event.id }

    /// Everything that the row shows, for VoiceOver.
    var label: String {
      let state =
        event.status == .cancelled ? "Cancelled" : event.myRole == .guest ? event.myStatus.title : "You are hosting"
      return ([event.title, time.text, state] + (isPending ? ["Not sent yet"] : [])).joined(separator: ", ")
    }
  }

  let home: Home
  private var store: MusterStore { home.store }

  /// Invitations that the user has not answered.
  var invitations: [Row] { rows { $0.myStatus == .invited && $0.myRole == .guest } }
  var plans: [Row] { rows { $0.myStatus != .invited || $0.myRole != .guest } }
  var past: [Row] { rows(of: store.pastEvents) { _ in true } }

  /// Whether there is nothing to show yet.
  var isLoading: Bool { !store.events.isLoaded && store.lastError == nil }

  /// The age of the list, in words for the user. Nil if the list is right, or still loading.
  var status: String? {
    if !store.isOffline, let error = store.lastError { return error.sentence }
    guard store.isOffline else { return store.events.isUpToDate || isLoading ? nil : "Updating…" }
    guard let date = store.events.upToDateAsOf else { return "You are offline." }
    return "You are offline. Up to date as of \(date.formatted(date: .abbreviated, time: .shortened))."
  }

  private func rows(of list: StoredList<Event>? = nil, where isWanted: (Event) -> Bool) -> [Row] {
    (list ?? store.events).items.filter(isWanted).map {
      Row(event: $0, time: EventTime(event: $0), isPending: store.outbox.isPending($0.id))
    }
  }
}
