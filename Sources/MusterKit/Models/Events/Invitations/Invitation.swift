import Foundation

/// The caller's invitation to a live event.
public struct Invitation: Codable, Sendable, Hashable {
  public var event: Event
  public var status: InvitationStatus
  public var invitedAt: Date

  public init(event: Event, status: InvitationStatus, invitedAt: Date) {
    self.event = event
    self.status = status
    self.invitedAt = invitedAt
  }
}

extension Invitation: Identifiable {
  public var id: UUID { event.id }
}
