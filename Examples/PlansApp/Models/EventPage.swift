import Foundation
import MusterClient
import Observation

/// One event with its guests, and the user's answer.
@MainActor @Observable
final class EventPage {
  let id: UUID
  /// The first guests, once they are loaded. They are not kept on the phone.
  private(set) var guests: [Guest] = []
  /// Why the guests could not be loaded, or the answer not be kept, for the user.
  private(set) var failure: String?
  /// For an event that is not in the list, such as a past one.
  private var loaded: Event?
  private let store: MusterStore
  private let client: MusterClient

  init(_ id: UUID, in store: MusterStore, client: MusterClient) {
    self.id = id
    self.store = store
    self.client = client
  }

  var event: Event? { store.events.items.first { $0.id == id } ?? loaded }

  var canAnswer: Bool { event.map { $0.myStatus != .creator && $0.status == .scheduled } ?? false }

  /// Whether an answer is not sent yet.
  var isPending: Bool { store.outbox.isPending(id) }

  /// Whether the service has refused the last answer. Set it to false when the user has read why.
  var isRefused: Bool {
    get { refused != nil }
    set {
      if !newValue, let refused { try? store.outbox.dismiss(refused) }
    }
  }

  /// Why the service refused the last answer, for the user. The event shows what it was before.
  var refusal: String? { refused?.sentence }

  func load() async {
    do {
      let event = try await client.events.get(id)
      loaded = event
      guests = event.participants ?? []
      failure = nil
    } catch is CancellationError {
      // The user left.
    } catch {
      failure = error.sentence
    }
  }

  /// Shows the answer at once. The store sends it now, or when there is a network again.
  func answer(_ status: AnswerStatus) {
    do {
      try store.perform(.answer(event: id, status))
      failure = nil
    } catch {
      failure = error.sentence
    }
  }

  private var refused: RefusedWrite? { store.outbox.refusals.last { $0.write.subject == id } }
}
