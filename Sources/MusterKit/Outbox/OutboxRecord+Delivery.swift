import Foundation

/// Requests with a write.
extension OutboxRecord {
  /// Seconds by the service's clock. The service keeps keys for an hour more.
  private static let keyLifetime: TimeInterval = 23 * 3600
  private static let maximumAttempts = 5
  private static let pageLength = 100

  /// There is something newer than the user saw.
  struct Superseded: Error {
    let state: NewerState
  }

  /// Sends the write. If its object has changed since the user saw it, but only in other members, it is sent again, based
  /// on the object as it is now.
  ///
  /// - Parameter rebase: keeps a new basis.
  /// - Returns: the object with the write, for those that set values.
  /// - Throws: ``Superseded``; ``MusterError``
  func deliver(with client: MusterClient, rebase: @MainActor @Sendable (Basis) async throws -> Void) async throws
    -> NewerState?
  {
    // After a day, the service no longer says whether an earlier request has happened. The values may be old because
    // they were brought back since.
    let isForgotten = isKeyForgotten(at: client.cache.caller.sender.serviceClock.now)
    if isForgotten, let answer = try await earlierAnswer(with: client) { return answer }
    var basis = basis
    for attempt in 1...Self.maximumAttempts {
      do {
        if basis?.needsReading != true { return try await write.send(with: client, key: key, basedOn: basis) }
      } catch MusterError.refused(let problem) where problem.type == .lostUpdate {
        // The version may be the app's own.
        if basis == nil { throw MusterError.refused(problem) }
      }
      guard let state = try await write.currentState(with: client) else { break }
      guard !isForgotten, attempt < Self.maximumAttempts, let new = basis?.renewed(for: write, on: state) else {
        throw Superseded(state: state)
      }
      try await rebase(new)
      basis = new
    }
    throw MusterError.unexpectedResponse(status: 412, detail: "There is nothing to compare with.")
  }

  /// Whether the write was sent so long ago, by the service's clock, that the service may have forgotten its key.
  func isKeyForgotten(at serviceTime: Date?) -> Bool {
    guard let attemptedAt else { return false }
    guard let serviceTime else { return true }
    return serviceTime.timeIntervalSince(attemptedAt) > Self.keyLifetime
  }

  /// Looks whether an answer has happened, once its key is forgotten. The service compares answers by their values, so an
  /// answer that was brought back since looks as if nothing had happened. The time of the answer tells, and of a guest
  /// who has none, that of the invitation: a withdrawn one takes the answer with it.
  ///
  /// - Returns: the answer, if it has happened; nil if none was given since the first attempt.
  /// - Throws: ``Superseded``; ``MusterError``
  private func earlierAnswer(with client: MusterClient) async throws -> NewerState? {
    guard case .answer(let answer, let id, let plusOnes) = write, let attemptedAt else { return nil }
    let event = try await client.events.get(id)
    let state = NewerState.answer(event.myStatus, plusOnes: event.myPlusOnes)
    if event.myParty.isResult(of: answer, bringing: plusOnes) { return state }
    // Guests who wait keep their time when they change the number of plus-ones.
    if event.myStatus == .waitlisted, answer == .going { throw Superseded(state: state) }
    let isNew =
      if event.myStatus == .invited {
        try await Self.isInvited(to: id, after: attemptedAt, with: client)
      } else {
        try await Self.isAnswered(id, since: attemptedAt, with: client)
      }
    if isNew { throw Superseded(state: state) }
    return nil
  }

  private static func isInvited(to id: Event.ID, after time: Date, with client: MusterClient) async throws -> Bool {
    // Newest first.
    for try await invitation in client.invitations.pages(status: .invited, limit: pageLength).items {
      guard invitation.invitedAt > time else { return false }
      if invitation.event.id == id { return true }
    }
    return false
  }

  private static func isAnswered(_ id: Event.ID, since time: Date, with client: MusterClient) async throws -> Bool {
    let me = client.userID
    for try await guest in client.events.guestPages(of: id, limit: pageLength).items where guest.user?.id == me {
      return guest.answeredAt ?? .distantPast >= time
    }
    return false
  }
}
