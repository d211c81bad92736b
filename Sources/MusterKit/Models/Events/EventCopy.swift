import Foundation

/// When and for whom an event is repeated.
public struct EventCopy: Codable, Sendable, Hashable {
  public var startTime: Date
  /// `.keep`: the copy is as long as the event.
  public var endTime: Edit<Date>
  /// Whether to invite the event's guests who are still friends of the caller.
  public var invite: Bool

  public init(startTime: Date, endTime: Edit<Date> = .keep, invite: Bool = false) {
    self.startTime = startTime
    self.endTime = endTime
    self.invite = invite
  }
}
