import Foundation
import MusterKit

/// The user's changes that did not happen, or may not have happened. They stay until the user decides.
@MainActor struct Refusals {
  let home: Home
  /// The event of a page; nil for all changes.
  var subject: UUID?

  var all: [RefusedWrite] { home.store.outbox.refusals.filter { subject == nil || $0.write?.subject == subject } }

  func title(of refusal: RefusedWrite) -> String {
    let event = home.store.events.items.first { $0.id.rawValue == refusal.write?.subject }?.title
    switch refusal.write {
    case .answer(let answer, _, _): return "Your answer “\(answer.title)”" + (event.map { " to “\($0)”" } ?? "")
    case .createEvent(let draft, _): return "Your new event “\(draft.title)”"
    case .sendRequest(let person, _): return "Your friend request to \(person.displayName)"
    case .editProfile: return "Your profile"
    case .report: return "Your report"
    default: return event.map { "Your change of “\($0)”" } ?? "Your change"
    }
  }

  /// The button that sends it as a new change, if that may succeed. One with an unknown outcome may then happen twice.
  func againButton(_ refusal: RefusedWrite) -> String? {
    guard let write = refusal.write else { return nil }
    if case .approve = write, refusal.newerState != nil { return "Let in" }
    return refusal.newerState != nil ? "Use mine" : refusal.isUnknown ? "Send again" : nil
  }

  /// The button that leaves everything as it is.
  func dismissButton(_ refusal: RefusedWrite) -> String {
    if case .approve? = refusal.write { return "OK" }
    return refusal.newerState == nil ? "OK" : "Keep the newer one"
  }

  func sendAgain(_ refusal: RefusedWrite) async { await home.attempt { try await home.store.sendAgain(refusal) } }
  func dismiss(_ refusal: RefusedWrite) async { await home.attempt { try await home.store.outbox.dismiss(refusal) } }
}
