import Foundation

/// An event, from a list or on its own.
public struct Event: Codable, Sendable, Hashable, Identifiable {
  public var id: UUID
  public var title: String
  public var note: String?
  public var startTime: Date
  public var endTime: Date?
  /// The time zone of the place, a name from the IANA database. The times themselves are in UTC.
  public var timeZone: String
  public var location: Location?
  /// The number of places for guests, not counting the hosts; nil for no limit.
  public var capacity: Int?
  /// The number of people whom each guest may bring along.
  public var maxPlusOnes: Int
  public var status: EventStatus
  /// Nil if the creator's account is deleted, or if the caller cannot see the creator.
  public var creator: Person?
  /// The creator and the co-hosts, the creator first.
  public var hosts: [Person]
  public var myRole: EventRole
  public var myStatus: MyStatus
  /// The number of people whom the caller brings along.
  public var myPlusOnes: Int
  /// Guests answer until this time. After it, only hosts set answers.
  public var answerBy: Date?
  /// Counts the hosts' edits. For `ifVersion`.
  public var version: Int
  public var createdAt: Date
  /// The time of the last edit.
  public var updatedAt: Date
  /// Nil in lists, if more than 200 are invited and the caller is not a host.
  public var counts: Counts?
  /// The first guests; nil in lists that do not include them.
  public var participants: [Guest]?

  public init(
    id: UUID, title: String, note: String? = nil, startTime: Date, endTime: Date? = nil, timeZone: String,
    location: Location? = nil, capacity: Int? = nil, maxPlusOnes: Int = 0, status: EventStatus = .scheduled,
    creator: Person?, hosts: [Person], myRole: EventRole, myStatus: MyStatus, myPlusOnes: Int = 0,
    answerBy: Date? = nil,
    version: Int = 1, createdAt: Date, updatedAt: Date, counts: Counts? = nil, participants: [Guest]? = nil
  ) {
    self.id = id
    self.title = title
    self.note = note
    self.startTime = startTime
    self.endTime = endTime
    self.timeZone = timeZone
    self.location = location
    self.capacity = capacity
    self.maxPlusOnes = maxPlusOnes
    self.status = status
    self.creator = creator
    self.hosts = hosts
    self.myRole = myRole
    self.myStatus = myStatus
    self.myPlusOnes = myPlusOnes
    self.answerBy = answerBy
    self.version = version
    self.createdAt = createdAt
    self.updatedAt = updatedAt
    self.counts = counts
    self.participants = participants
  }
}

extension Event {
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    let creator = try container.decodeIfPresent(Person.self, forKey: .creator)
    let myStatus = try container.decode(MyStatus.self, forKey: .myStatus)
    let role = try container.decodeIfPresent(EventRole.self, forKey: .myRole)
    self.init(
      id: try container.decode(UUID.self, forKey: .id),
      title: try container.decode(String.self, forKey: .title),
      note: try container.decodeIfPresent(String.self, forKey: .note),
      startTime: try container.decode(Date.self, forKey: .startTime),
      endTime: try container.decodeIfPresent(Date.self, forKey: .endTime),
      timeZone: try container.decode(String.self, forKey: .timeZone),
      location: try container.decodeIfPresent(Location.self, forKey: .location),
      capacity: try container.decodeIfPresent(Int.self, forKey: .capacity),
      maxPlusOnes: try container.decodeIfPresent(Int.self, forKey: .maxPlusOnes) ?? 0,
      status: try container.decode(EventStatus.self, forKey: .status),
      creator: creator,
      hosts: try container.decodeIfPresent([Person].self, forKey: .hosts) ?? creator.map { [$0] } ?? [],
      myRole: role ?? (myStatus == .creator ? .creator : .guest),
      myStatus: myStatus,
      myPlusOnes: try container.decodeIfPresent(Int.self, forKey: .myPlusOnes) ?? 0,
      answerBy: try container.decodeIfPresent(Date.self, forKey: .answerBy),
      version: try container.decode(Int.self, forKey: .version),
      createdAt: try container.decode(Date.self, forKey: .createdAt),
      updatedAt: try container.decode(Date.self, forKey: .updatedAt),
      counts: try container.decodeIfPresent(Counts.self, forKey: .counts),
      participants: try container.decodeIfPresent([Guest].self, forKey: .participants))
  }
}
