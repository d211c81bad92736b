import Foundation

/// A new event.
public struct EventDraft: Codable, Sendable, Hashable {
  public var title: String
  public var note: String?
  public var startTime: Date
  /// Must be after `startTime`.
  public var endTime: Date?
  /// The time zone of the place, a name from the IANA database.
  public var timeZone: String
  public var location: Location?
  /// The number of places for guests; nil for no limit.
  public var capacity: Int?
  /// Guests answer until then; not after `startTime`.
  public var answerBy: Date?
  /// The number of people whom each guest may bring along, at most 10; nil for none.
  public var maxPlusOnes: Int?
  /// Friends of the caller. All are invited, or nothing happens.
  public var inviteeIds: [UUID]

  public init(
    title: String, note: String? = nil, startTime: Date, endTime: Date? = nil,
    timeZone: String = TimeZone.current.identifier, location: Location? = nil, capacity: Int? = nil,
    answerBy: Date? = nil, maxPlusOnes: Int? = nil, inviteeIds: [UUID] = []
  ) {
    self.title = title
    self.note = note
    self.startTime = startTime
    self.endTime = endTime
    self.timeZone = timeZone
    self.location = location
    self.capacity = capacity
    self.answerBy = answerBy
    self.maxPlusOnes = maxPlusOnes
    self.inviteeIds = inviteeIds
  }
}
