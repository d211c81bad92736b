import Foundation

/// A guest of an event: an invitee with an account, or a visitor without one.
public struct Guest: Codable, Sendable, Hashable, Identifiable {
  public var id: UUID
  /// Nil for a visitor.
  public var user: Person?
  public var name: String
  public var status: InvitationStatus
  /// The number of people whom the guest brings along.
  public var plusOnes: Int
  /// The time of the answer. For a guest who was promoted from the waiting list, the time when they asked for a place.
  public var answeredAt: Date?

  public init(
    id: UUID, user: Person?, name: String, status: InvitationStatus, plusOnes: Int = 0, answeredAt: Date? = nil
  ) {
    self.id = id
    self.user = user
    self.name = name
    self.status = status
    self.plusOnes = plusOnes
    self.answeredAt = answeredAt
  }
}

extension Guest {
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    let user = try container.decodeIfPresent(Person.self, forKey: .user)
    self.user = user
    id = try container.decodeIfPresent(UUID.self, forKey: .id) ?? user?.id ?? UUID()
    name = try container.decodeIfPresent(String.self, forKey: .name) ?? user?.displayName ?? ""
    status = try container.decode(InvitationStatus.self, forKey: .status)
    plusOnes = try container.decodeIfPresent(Int.self, forKey: .plusOnes) ?? 0
    answeredAt = try container.decodeIfPresent(Date.self, forKey: .answeredAt)
  }
}
