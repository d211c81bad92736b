import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// The promise of the cache, as phones see it: a copy that is called fresh is what the service would send now. Many
/// users act on each other concurrently. Statements and commits are slow, transactions are rolled back, the clock is
/// set back, and processes are killed. See ``CrowdedWorld``, ``CachingPhone`` and ``History``.
@Suite struct HistoryTests {
  /// Set for longer runs.
  private static let settings = [
    "MUSTER_THROTTLING": "off", "MUSTER_ACCESS_TOKEN_SECONDS": "86400",
    // Keeps `pictureUrl` the same, no matter which port the service listens on.
    "MUSTER_PUBLIC_URL": "http://muster.example",
  ]

  @Test func `a stale copy is never called fresh, despite late commits and a changing clock`()
    async throws
  {
    try await TestApp.run(Self.settings, prepare: Trouble.prepareClock) { app in
      let history = History(goal: testsAreLong ? 1_000_000 : 20_000, hasEveryVerb: true)
      let world = try await CrowdedWorld(in: app, history)
      try await Trouble.begin(slow: 8, failing: 1, in: app)
      try await world.run(phonesEach: testsAreLong ? 6 : 2, clockIsSet: true)
      try await Trouble.end(in: app)
      #expect(history.violations == [])
      let tally = history.tally
      if testsAreLong { print("\(tally)") }
      for verb in Set(RandomVerb.all { $0.together }) {
        #expect(tally.done[verb, default: 0] > 0, "\(verb) is never done")
      }
      // Each kind of outcome occurred often enough to matter.
      #expect(tally.fresh > tally.validations / 20, "\(tally)")
      #expect(tally.validations - tally.fresh > tally.validations / 20, "\(tally)")
      #expect(tally.broughtAlong > 100 && tally.unchanged > 100 && tally.changed > 100, "\(tally)")
      try await app.expectConsistency()
      try await app.expectNothingCrossesABlock()
      try await app.takeNotifications()
    }
  }

  @Test func `a stale copy is never called fresh by services that are killed at any moment`() async throws {
    try await TestApp.run(Self.settings) { app in
      let history = History()
      let world = try await CrowdedWorld(in: app, history)
      try await Trouble.begin(slow: 8, failing: 1, in: app)
      var random = SeededRandom(seed: 6)
      var service = try await ServiceProcess(of: app, Self.settings)
      defer { service.program.signal(SIGKILL) }
      world.place.move(to: service.app)
      async let story: Void = world.run()
      for _ in 0..<(testsAreLong ? 200 : 4) {
        let before = history.tally
        try await eventually(within: .seconds(60)) { history.tally.validations > before.validations + 100 }
        try await Task.sleep(for: .milliseconds(Int.random(in: 1...300, using: &random)))
        try await service.kill()
        service = try await ServiceProcess(of: app, Self.settings)
        world.place.move(to: service.app)
      }
      let before = history.tally
      try await eventually(within: .seconds(60)) { history.tally.validations > before.validations + 500 }
      history.end()
      try await story
      #expect(history.violations == [])
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  // MARK: Broken promises are detected

  @Test(arguments: Trouble.Mutation.allCases)
  func `a broken promise is detected`(mutation: Trouble.Mutation) async throws {
    try await TestApp.run(Self.settings) { app in
      let history = History(goal: 60_000, endsAtViolation: true)
      let world = try await CrowdedWorld(in: app, history)
      // Only this one needs slow statements: phones must see a stamp before a late commit sets it back.
      if mutation == .stampsOfTheBeginning { try await Trouble.begin(slow: 60, failing: 0, longest: 0.2, in: app) }
      try await Trouble.apply(mutation, in: app)
      try await world.run(datesLate: mutation == .itemsBeforeTheirStamp)
      #expect(!history.violations.isEmpty, "no violation is found in \(history.tally.validations) validations")
      try await app.takeNotifications()
    }
  }
}
