extension Write {
  /// Why a write may be sent again, although an earlier request with it may have had its effect. The service forgets
  /// the keys of writes after a day, and a phone may be without a network for longer.
  enum Repetition: Sendable, Hashable {
    /// What the write ends never begins again under the same id, so the second request finds it ended.
    case isFinal
    /// The write only adds to a set that never shrinks.
    case onlyGrows
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
    // Without an id of the client's, a second request creates a second event.
    case .createEvent, .sendRequest: .needsKey
    // Without the earlier state, a second request overwrites a newer one.
    case .answer, .editEvent, .editProfile, .setPreferences: .needsKey
    }
  }

  /// Whether a repeated request is safe only as long as the service knows its key.
  var needsKey: Bool { repetition == .needsKey }
}
