import Foundation
import MusterKit
import TestSupport
import Testing

/// The demo, exported by `muster seed export` once for all tests.
enum ExportedDemo {
  private static let made = Locked<[URL]>([])

  private static let cleaning: Void = {
    atexit {
      for folder in ExportedDemo.made.value { try? FileManager.default.removeItem(at: folder) }
    }
  }()

  private static func export(_ options: String...) async throws -> URL {
    let folder = FileManager.default.temporaryDirectory.appending(path: "muster-preview-\(UUID().uuidString)")
    made.change { $0.append(folder) }
    _ = cleaning
    let program = try await Program(Program.path("muster"), ["seed", "export", folder.path] + options, in: "/tmp")
    let status = try await program.exitStatus(within: .seconds(120))
    try #require(status == 0, "\(program.standardError)")
    return folder
  }

  private static let common = Task { try await export() }
  private static let current = Task {
    try await export("--day", Date.now.formatted(Date.ISO8601FormatStyle(timeZone: .gmt).year().month().day()))
  }

  static var folder: URL { get async throws { try await common.value } }
  /// The demo of today, whose events are still to come.
  static var today: URL { get async throws { try await current.value } }

  static let ana: User.ID = id("0000-7000-8000-000000000001")
  /// A friend of ana.
  static let ben: User.ID = id("0000-7000-8000-000000000002")
  /// Has sent ana a friend request.
  static let fatima: User.ID = id("0000-7000-8000-000000000006")
  /// Blocked by ana.
  static let kai: User.ID = id("0000-7000-8000-00000000000b")
  /// No friend of ana.
  static let lina: User.ID = id("0000-7000-8000-00000000000c")
  /// ana's own event, which is full.
  static let climbing: Event.ID = id("0000-7000-8002-000000000004")
  /// ana is invited.
  static let trailRun: Event.ID = id("0000-7000-8002-000000000005")
  static let cancelled: Event.ID = id("0000-7000-8002-000000000007")
  /// Is full. ana waits for a place.
  static let filmNight: Event.ID = id("0000-7000-8002-00000000000b")
  /// ana is a co-host.
  static let party: Event.ID = id("0000-7000-8002-000000000010")
  static let archived: Event.ID = id("0000-7000-8002-000000000002")

  private static func id<Thing>(_ rest: String) -> Identifier<Thing> { Identifier("01900000-" + rest) ?? Identifier() }
}
