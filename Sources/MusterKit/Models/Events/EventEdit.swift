import Foundation

/// A change of an event. Nil and `.keep` leave a value as it is.
public struct EventEdit: Codable, Sendable, Hashable {
  public var title: String?
  public var note: Edit<String>
  public var startTime: Date?
  /// Must be after the `startTime` that results from the edit.
  public var endTime: Edit<Date>
  public var timeZone: String?
  /// Replaced as a whole.
  public var location: Edit<Location>
  public var capacity: Edit<Int>
  /// Must not be after the `startTime` that results from the edit.
  public var answerBy: Edit<Date>
  /// The number of people whom each guest may bring along, at most 10. Lowering it changes no answer.
  public var maxPlusOnes: Int?

  public init(
    title: String? = nil, note: Edit<String> = .keep, startTime: Date? = nil, endTime: Edit<Date> = .keep,
    timeZone: String? = nil, location: Edit<Location> = .keep, capacity: Edit<Int> = .keep,
    answerBy: Edit<Date> = .keep, maxPlusOnes: Int? = nil
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
  }
}
