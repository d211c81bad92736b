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
