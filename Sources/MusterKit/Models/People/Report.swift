import Foundation

/// A report that the caller has sent to the operators.
public struct Report: Codable, Sendable, Hashable, Identifiable {
  public var id: UUID
  /// The reported user; nil if something else is reported.
  public var userId: UUID?
  /// The reported event; nil if something else is reported.
  public var eventId: UUID?
  /// The reported visitor; nil if something else is reported.
  public var guestId: UUID?
  public var reason: ReportReason
  /// The caller's own words.
  public var text: String?
  public var createdAt: Date

  public init(
    id: UUID, userId: UUID? = nil, eventId: UUID? = nil, guestId: UUID? = nil, reason: ReportReason,
    text: String? = nil, createdAt: Date
  ) {
    self.id = id
    self.userId = userId
    self.eventId = eventId
    self.guestId = guestId
    self.reason = reason
    self.text = text
    self.createdAt = createdAt
  }
}
