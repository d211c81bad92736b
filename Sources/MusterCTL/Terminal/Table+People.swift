import Foundation
import MusterKit

extension Table {
  /// Users, each with a time that `title` explains.
  static func people(_ people: [(user: Person, time: Date)], title: String) -> Table {
    Table(
      [.init("USERNAME"), .init("NAME", .flexible), .init(title, .optional)],
      rows: people.map { user, time in
        [.init(user.username), .init(user.displayName), .init(TimeText.here.day(time), .faint)]
      })
  }
}
