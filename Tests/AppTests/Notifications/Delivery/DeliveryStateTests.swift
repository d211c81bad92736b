import Foundation
import TestSupport
import Testing

@testable import App

/// Random orders of claims, outcomes, failures, lost leases, kills and stops, without a database, network or clock. See
/// ``DeliveryWorld``.
///
/// A violation names its order. `MUSTER_DELIVERY_ORDER=17` runs that order alone, and prints all that happens in it.
@Suite struct DeliveryStateTests {
  private static let orders: UInt64 = testsAreLong ? 100_000 : 2000
  private static let steps = 80
  private static let only = ProcessInfo.processInfo.environment["MUSTER_DELIVERY_ORDER"].flatMap { UInt64($0) }

  /// - Returns: the worlds after their orders, up to the first violation.
  private func run(
    _ count: UInt64, _ troubles: DeliveryWorld.Troubles, hasKiller: Bool = false, load: Int? = nil,
    steps: Int = Self.steps
  ) async -> [DeliveryWorld] {
    var worlds: [DeliveryWorld] = []
    for seed in Self.only.map({ $0...$0 }) ?? 0...count - 1 {
      var world = DeliveryWorld(
        seed: seed, troubles, hasKiller: hasKiller, load: load, isTraced: Self.only != nil)
      do {
        try world.run(steps: steps)
      } catch {
        Issue.record("order \(seed): \(error)")
        return worlds
      }
      if Self.only != nil { print(world.ledger.trace.joined(separator: "\n")) }
      worlds.append(world)
      // Other tests also need the thread.
      await Task.yield()
    }
    return worlds
  }

  @Test func `in any order of events, each claimed row has one outcome, and none is sent twice or lost`() async {
    let worlds = await run(Self.orders, .all)
    guard Self.only == nil, worlds.count == Int(Self.orders) else { return }
    // A world in which nothing happens would prove nothing.
    let counts = worlds.map(\.ledger)
    #expect(counts.count { $0.sends > 10 } > worlds.count / 2)
    #expect(counts.count { $0.lost > 0 } > worlds.count / 10)
    #expect(counts.allSatisfy { $0.stops == 1 })
    for mode in [DeliveryState.Mode.oneRound, .untilNothingIsDue, .untilStopped] {
      #expect(worlds.count { $0.mode == mode } > worlds.count / 10, "\(mode)")
    }
  }

  @Test(arguments: [DeliveryWorld.Troubles.failingWrites, .failures])
  func `a worker that cannot write or send leases only as many rows as it may hold`(
    troubles: DeliveryWorld.Troubles
  ) async {
    for world in await run(Self.orders / 40, troubles, load: 200, steps: 500) {
      // The limit is reached: nothing that a claim could take is missing.
      let least = troubles.contains(.failingWrites) ? 4 * 16 : 16
      #expect(world.ledger.mostHeld >= least, "order \(world.seed)")
    }
  }

  @Test func `without troubles, every row is sent exactly once`() async {
    for world in await run(Self.orders / 4, []) {
      #expect(world.rows.isEmpty && world.ledger.sends == world.enqueued, "order \(world.seed)")
    }
  }

  @Test func `one row that kills workers becomes a dead letter after three deaths, and takes no other with it`() async {
    for world in await run(Self.orders / 2, [], hasKiller: true) {
      let dead = world.rows.values.filter(\.isDead)
      #expect(dead.map(\.id) == [world.killer] && dead.first?.deaths == 3, "order \(world.seed)")
    }
  }
}
