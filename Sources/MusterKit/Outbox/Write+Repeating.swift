import Foundation

extension Write {
  /// Why a write may be sent again, although an earlier request with it may have had its effect. The service forgets
  /// the keys of writes after a day, and a phone may be without a network for longer.
  enum Repetition: Sendable, Hashable {
    /// The write ends a thing that never begins again under the same id, so the second request finds it ended.
    case isFinal
    /// The write only adds to a set that never shrinks.
    case onlyGrows
    /// The new thing has its id from the client, so the second request finds it.
    case hasOwnID
    /// The write says what it is based on. The second request finds the state as it wants it, or is refused.
    case isBased
    /// It may not: another device may have undone the write since, and the second request would do it again. It is
    /// safe as long as the service knows the write's key.
    case needsKey
  }

  var repetition: Repetition {
    switch self {
    // A request is answered or cancelled once. Later requests have other ids.
    case .acceptRequest, .declineRequest, .cancelRequest: .isFinal
    // Events stay cancelled.
    case .cancelEvent: .isFinal
    // Notifications stay read. "All" ends at a stamp.
    case .markRead, .markAllRead: .onlyGrows
    // The two may be friends again.
    case .endFriendship: .needsKey
    // The user may be unblocked, or blocked again.
    case .block, .unblock: .needsKey
    // A host may have withdrawn the invitation, or invited the guest again.
    case .invite, .withdraw: .needsKey
    // The guest may have given the same answer again that the first request has replaced.
    case .setAnswer: .needsKey
    // The offer may have been declined, and the role given or taken again.
    case .addHost, .removeHost: .needsKey
    case .createEvent, .sendRequest, .report: .hasOwnID
    // Without a basis, a second request overwrites a newer state: see ``OutboxRecord/needsKey``.
    case .answer, .approve, .editEvent, .editProfile, .setPicture, .removePicture, .setPreferences: .isBased
    }
  }
}

extension OutboxRecord {
  /// Whether a repeated request is safe only as long as the service knows its key.
  var needsKey: Bool {
    switch write.repetition {
    case .isFinal, .onlyGrows, .hasOwnID: false
    case .isBased: basis == nil && !write.hasVersion
    case .needsKey: true
    }
  }

  /// Whether it matters that a request may have had its effect.
  var notesAttempts: Bool { basis != nil || needsKey }
}

extension Write {
  /// Whether nothing else makes a repeated request safe.
  var needsKey: Bool { repetition == .needsKey }

  fileprivate var hasVersion: Bool { if case .editEvent(_, _, .some) = self { true } else { false } }
}
