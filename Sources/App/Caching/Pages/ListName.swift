/// The list to which a cursor belongs. A cursor is invalid in any other list. Clients hold the numbers, so they must
/// not change.
enum ListName: UInt8, Sendable {
  case friends = 1
  case incomingRequests, sentRequests, events, pastEvents, invitations, invitationsByStatus, sessions
  case guests, blocks, inbox, devices, unreadInbox, filteredRequests, proposals
}
