import Foundation

/// The caller's invitations.
public struct InvitationsAPI: Sendable {
  let caller: APICaller

  /// Invitations to live events, newest first: the collection `invitations`, unless `status` or `includeParticipants`
  /// is given.
  public func list(
    status: GuestStatus? = nil, limit: Int? = nil, cursor: String? = nil, includeParticipants: Bool = false
  ) async throws -> Page<Invitation> {
    let query = [("status", status?.rawValue), ("include", includeParticipants ? "participants" : nil)]
    return try await caller.get(.page(.listInvitations, query, limit: limit, cursor: cursor))
  }
}

/// Proposals that the user may accept or decline: answers of visitors with the user's address, and offers to host an
/// event.
public struct ProposalsAPI: Sendable {
  let caller: APICaller

  /// The user's proposals, newest first.
  public func list(limit: Int? = nil, cursor: String? = nil) async throws -> Page<Proposal> {
    try await caller.get(.page(.listProposals, limit: limit, cursor: cursor))
  }

  /// Makes the visitor's answer the user's own, or the user a co-host.
  ///
  /// - Throws: ``MusterError``: `proposal-not-found`, `event-cancelled`, `event-archived`, `too-many-hosts`
  @discardableResult
  public func accept(_ id: Proposal.ID, key: IdempotencyKey = .random()) async throws -> Event {
    try await caller.get(.write(.acceptProposal(id), key: key))
  }

  /// Refuses the visitor's answer, whose party leaves, or the offer.
  ///
  /// - Throws: ``MusterError``: `proposal-not-found`, `event-cancelled`, `event-archived`
  public func decline(_ id: Proposal.ID, key: IdempotencyKey = .random()) async throws {
    try await caller.send(.write(.declineProposal(id), key: key))
  }
}
