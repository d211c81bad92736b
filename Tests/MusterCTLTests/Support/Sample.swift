import Foundation
import MusterKit

/// Events for tests of names and texts.
enum Sample {
  static func event(
    _ title: String, id: String = UUID().uuidString, start: Date = Date(timeIntervalSince1970: 1_777_658_400),
    end: Date? = nil, zone: String = "Europe/Lisbon", myStatus: GuestStatus = "creator"
  ) -> Event {
    let ana = Person(id: User.ID(), username: "ana", displayName: "Ana Duarte")
    return Event(
      id: Event.ID(id) ?? Event.ID(), title: title, startTime: start, endTime: end,
      timeZone: TimeZone(identifier: zone) ?? .gmt, status: .scheduled, creator: ana, hosts: [ana], version: 1,
      createdAt: start, updatedAt: start, myRole: .creator, myStatus: myStatus)
  }
}
