import MusterKit
import Observation

/// Shared by the screens of a logged-in user: the store, and one place for errors.
@MainActor @Observable
final class Home {
  let store: MusterStore
  let client: MusterClient
  /// Why the last action did not work, or what became of it, for an alert.
  var failure: String?

  init(store: MusterStore, client: MusterClient) { (self.store, self.client) = (store, client) }

  var unsent: Int { store.outbox.pending.count { !$0.isSent } }
  /// The service holds back the friend requests of a user without a verified address.
  var note: String? {
    guard let user = store.profile.value, !user.emailVerified, user.identities.isEmpty else { return nil }
    return "Others do not see your requests until you open the link in our mail."
  }

  /// Shows a change immediately. The store sends it now, or when there is a network again.
  @discardableResult
  func perform(_ write: Write) async -> Bool { await attempt { try await store.perform(write) } != nil }

  /// No list shows a report.
  func report(_ subject: Report.Subject, for reason: ReportReason) async {
    if await perform(.report(subject, reason: reason)) { failure = "Thank you. We will look at it." }
  }

  @discardableResult
  func attempt<Value>(_ action: @MainActor () async throws -> Value) async -> Value? {
    var value: Value?
    failure = await Self.failure { value = try await action() } ?? failure
    return value
  }

  /// Why an action does not work, for the user. Nil if it does, and if the user leaves before it ends.
  static func failure(of action: @MainActor () async throws -> Void) async -> String? {
    do {
      try await action()
      return nil
    } catch { return error is CancellationError ? nil : error.sentence }
  }

  /// Returns when all lists are proved to be right, or cannot be. ``EventList/status`` says which.
  func refresh() async { try? await store.refresh() }
}

extension Optional {
  /// For the binding of an alert, which sets it to false.
  var isSet: Bool {
    get { self != nil }
    set { if !newValue { self = nil } }
  }
}
