import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Random sequences of all verbs, checked against a model of the contract that is too simple to have the same bugs. See
/// ``ModelWorld`` and ``Model``.
@Suite struct ModelTests {
  private static let environment = ProcessInfo.processInfo.environment
  /// Set for longer runs.
  private static let steps = testsAreLong ? 400 : 150
  /// A violation names its seed. Set `MUSTER_MODEL_SEED` to that seed to reproduce it.
  private static let seeds: [UInt64] = {
    if let seed = environment["MUSTER_MODEL_SEED"].flatMap({ UInt64($0) }) { return [seed] }
    return Array(0..<(testsAreLong ? 60 : 4))
  }()
  private static let atOnce = 3

  @Test func `every list and every notification matches the model, for any sequence of verbs`() async throws {
    let tally = Tally<RandomVerb>()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (number, seed) in Self.seeds.enumerated() {
        if number >= Self.atOnce { _ = try await group.next() }
        group.addTask {
          try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
            var world = try await ModelWorld(app, seed: seed)
            try await world.run(steps: Self.steps)
            tally.add(world.done)
            // The world has compared the state of each guest with the model, which counts places.
            try await app.expectConsistency(lowersCapacities: true)
            try await app.takeNotifications()
          }
        }
      }
      try await group.waitForAll()
    }
    guard Self.seeds.count > 1 else { return }
    for verb in Set(RandomVerb.all { $0.alone }) { #expect(tally[verb] > 0, "\(verb) is never done") }
  }

  // MARK: Deviations are detected

  @Test(arguments: [
    ("UPDATE users SET display_name = display_name || '!'", "differs from the model"),
    ("DELETE FROM friendships", "differs from the model"),
    ("DELETE FROM notification_queue", "The queue differs from the model"),
    ("DELETE FROM notifications", "differs from the model"),
    ("UPDATE notifications SET created_at = created_at - interval '1 day'", "its stamp has not moved"),
    ("INSERT INTO muted_notifications SELECT id, 'event-invited' FROM users", "differs from the model"),
    ("UPDATE notification_queue SET recipient_ids = ARRAY[subject_id]", "The queue differs from the model"),
    // The model ignores this column, but a copy that differs in one byte must not be called fresh.
    ("UPDATE friendships SET since = since - interval '1 day'", "its stamp has not moved"),
  ])
  func `a change that no verb made is detected`(sql: String, finding: String) async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      var world = try await ModelWorld(app, seed: 0)
      try await world.checkEverything()
      try await app.database.execute("\(unescaped: sql)")
      do {
        try await world.checkEverything()
        Issue.record("no violation is found")
      } catch let violation as ModelWorld.Violation {
        #expect(violation.description.contains(finding), "\(violation)")
      }
      try await app.takeNotifications()
    }
  }

  @Test func `a server that sends only items with a later time is detected`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      do {
        var world = try await ModelWorld(app, seed: 0, deltas: .times)
        try await world.run(steps: 400)
        Issue.record("no violation is found")
      } catch let violation as ModelWorld.Violation {
        #expect(violation.description.contains("kept by its changes, differs from its GET"), "\(violation)")
      }
      try await app.takeNotifications()
    }
  }
}
