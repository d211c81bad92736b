extension MusterStore {
  /// The basis of a write, as the service sent it last.
  func receivedBasis(of write: Write) -> Basis? {
    if case .approve(_, let id) = write { return openedEvents.find(id)?.eTag.map(Basis.copy) }
    return receivedState(for: write).flatMap { Basis(of: write, $0) }
  }

  /// The object whose values a write sets, as the service sent it last. Nil for other writes, and without a copy.
  func receivedState(for write: Write) -> NewerState? {
    // The host has seen the guest whom the app passes.
    if case .setAnswer(_, let guest, _) = write { return .answer(guest.status, plusOnes: guest.plusOnes) }
    switch write.target {
    case .answer(let id), .event(let id):
      // The user's own event may be pending: then it is as they have made it.
      return (receivedEvent(id)?.event ?? events.items.first { $0.id == id }).map(NewerState.event)
    case .profile:
      guard var user = base.profile else { return nil }
      user.timestamp = statuses[.profile]?.stamp
      return .profile(user)
    case .preferences:
      guard var preferences = base.notificationPreferences else { return nil }
      preferences.timestamp = statuses[.notificationPreferences]?.stamp
      return .preferences(preferences)
    case .answerOf, nil: return nil
    }
  }

  /// The number of the request whose response has the object whose values a write sets, as the user sees it. A response
  /// that came later may have a newer one.
  func requestSeen(for write: Write) -> Int? {
    let number: Int? =
      switch write.target {
      case .answer(let id), .event(let id): receivedEvent(id)?.request ?? statuses[.events]?.provedBy
      case .answerOf(_, let id): openedEvents.find(id)?.provedBy
      case .profile: statuses[.profile]?.provedBy
      case .preferences: statuses[.notificationPreferences]?.provedBy
      case nil: nil
      }
    // Without a proof on the disk, it is not known which writes the copy has seen.
    return number == 0 ? nil : number
  }

  /// Whether the lists, or an event that is open, show what an answer does: nothing that they have refuses it.
  func isPossible(_ record: OutboxRecord) -> Bool {
    var lists = base
    if case .answer(_, let id, _) = record.write, let event = receivedEvent(id)?.event { lists.events = [event] }
    return lists.refusal(of: record.write, at: record.createdAt) == nil
  }
}
