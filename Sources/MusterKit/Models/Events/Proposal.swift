import Foundation

/// What the user may accept or decline.
public struct Proposal: Codable, Sendable, Hashable, Identifiable {
  /// What is proposed.
  public struct Kind: WireValue {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    /// The answer of a visitor with the user's address.
    public static let answer: Self = "answer"
    /// An offer to host the event.
    public static let host: Self = "host"
  }

  /// The event. The user may not be a guest of it.
  public struct Event: Codable, Sendable, Hashable, Identifiable {
    public var id: UUID
    public var title: String
    public var startTime: Date
    public var timeZone: String

    public init(id: UUID, title: String, startTime: Date, timeZone: String) {
      self.id = id
      self.title = title
      self.startTime = startTime
      self.timeZone = timeZone
    }
  }

  public var id: UUID
  public var kind: Kind
  public var event: Event
  /// The creator, who offers; nil for an answer.
  public var person: Person?
  /// The name that was typed into the form, by anyone; nil for an offer.
  public var name: String?
  /// The visitor's answer; nil for an offer.
  public var status: InvitationStatus?
  public var plusOnes: Int
  public var createdAt: Date

  public init(
    id: UUID, kind: Kind, event: Event, person: Person? = nil, name: String? = nil, status: InvitationStatus? = nil,
    plusOnes: Int = 0, createdAt: Date
  ) {
    self.id = id
    self.kind = kind
    self.event = event
    self.person = person
    self.name = name
    self.status = status
    self.plusOnes = plusOnes
    self.createdAt = createdAt
  }
}
