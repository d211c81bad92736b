import Foundation

/// An offer to host an event that the user has neither accepted nor declined.
public struct HostOffer: Codable, Sendable, Hashable, Identifiable {
  public var user: Person
  public var offeredAt: Date

  public var id: UUID { user.id }

  public init(user: Person, offeredAt: Date) {
    self.user = user
    self.offeredAt = offeredAt
  }
}
