import Foundation
import MusterKit

/// Events for tests of names and texts.
enum Sample {
  static func event(
    _ title: String, id: String = UUID().uuidString, start: Date = Date(timeIntervalSince1970: 1_777_658_400),
    end: Date? = nil, zone: String = "Europe/Lisbon", myStatus: MyStatus = .creator
  ) -> Event {
    let ana = Person(id: UUID(), username: "ana", displayName: "Ana Duarte")
    return Event(
      id: UUID(uuidString: id) ?? UUID(), title: title, startTime: start, endTime: end, timeZone: zone, creator: ana,
      hosts: [ana], myRole: .creator, myStatus: myStatus, createdAt: start, updatedAt: start)
  }
}
