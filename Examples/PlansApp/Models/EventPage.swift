import Foundation
import MusterKit
import Observation

/// One event with its guests, and the user's answer.
@MainActor @Observable
final class EventPage {
  let id: Event.ID
  /// The first guests, once they are loaded. They are not kept on the phone.
  private(set) var guests: [Guest] = []
  /// Why the guests could not be loaded, or the answer not be kept, for the user.
  private(set) var failure: String?
  /// For an event that is not in the list, such as a past one.
  private var loaded: Event?
  private let store: MusterStore
  private let client: MusterClient

  init(_ id: Event.ID, in store: MusterStore, client: MusterClient) {
    (self.id, self.store, self.client) = (id, store, client)
  }

  var event: Event? { store.events.items.first { $0.id == id } ?? loaded }

  var canAnswer: Bool { event.map { $0.canAnswer().reason == nil } ?? false }

  /// The change of this event that the service refused. The event shows its earlier state.
  var refusals: Refusals { Refusals(store: store, subject: id.rawValue) }

  /// Whether an answer is not sent yet.
  var isPending: Bool { store.outbox.isPending(id) }

  func load() async {
    do {
      let event = try await client.events.get(id)
      (loaded, guests, failure) = (event, event.participants ?? [], nil)
    } catch is CancellationError {
      // The user left.
    } catch { failure = error.sentence }
  }

  /// Returns when the answer is sent and the event is what the service has, or when this cannot be.
  func refresh() async {
    try? await store.refresh()
    await load()
  }

  /// Shows the answer immediately. The store sends it now, or when there is a network again.
  func answer(_ answer: Answer) async {
    do {
      try await store.perform(.answer(answer, to: id))
      failure = nil
    } catch { failure = error.sentence }
  }
}
