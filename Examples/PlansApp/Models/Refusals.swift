import Foundation
import MusterKit

/// The user's changes that did not happen, or may not have happened. They stay until the user decides.
@MainActor struct Refusals {
  let store: MusterStore
  /// The event of a page; nil for all changes.
  var subject: UUID?

  var all: [RefusedWrite] { store.outbox.refusals.filter { subject == nil || $0.write?.subject == subject } }

  /// The event that a change is about.
  func title(of refusal: RefusedWrite) -> String {
    store.events.items.first { $0.id.rawValue == refusal.write?.subject }?.title ?? "Your change"
  }

  /// Sends it as a new change. One with an unknown outcome may then happen twice.
  func sendAgain(_ refusal: RefusedWrite) async { _ = try? await store.sendAgain(refusal) }

  func discard(_ refusal: RefusedWrite) async { try? await store.outbox.dismiss(refusal) }
}
