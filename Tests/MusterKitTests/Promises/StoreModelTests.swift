import Foundation
import MusterKit
import TestSupport
import Testing

/// Random writes, refreshes and failures of networks, for several users with two phones each: whenever a store claims
/// that a list is up to date, it shows what the server's GET returns. Clocks jump, weekends pass without a network, disks
/// fill, files break: each write is carried out once, or refused, and none replaces a value that is newer than the one
/// that its phone showed. See ``StoreWorld``.
///
/// With `MUSTER_LONG_TESTS=1`, 100,000 claims and 10,000 writes are compared. A short run also ends by time.
@Suite(.serialized, .timeLimit(.minutes(120))) struct StoreModelTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static let claims = environment["MUSTER_STORE_CLAIMS"].flatMap { Int($0) } ?? (testsAreLong ? 100_000 : 1000)
  /// A false claim names its seed. Set `MUSTER_STORE_SEED` to begin with it.
  private static let seed = environment["MUSTER_STORE_SEED"].flatMap { UInt64($0) } ?? 1
  private static let rounds = 12
  /// A short run may not meet everything that is rare. It then plays on, up to this many times.
  private static let extraPlays = 6
  /// A short run begins no further play after this time. On a slow machine, it then has compared less.
  private static let patience: Duration = .seconds(25)

  @Test func `whenever a store claims to be up to date, it shows what the server sends`() async throws {
    // The tokens are refreshed again and again, on networks that break.
    try await MusterServer.run(["MUSTER_ACCESS_TOKEN_SECONDS": "3"]) { server in
      var tally = StoreWorld.Tally()
      var seed = Self.seed
      var extra = 0
      let start = ContinuousClock.now
      var isOutOfTime: Bool { !testsAreLong && ContinuousClock.now - start > Self.patience }
      while tally.claims < Self.claims || !tally.missing.isEmpty && extra < Self.extraPlays, tally.falseClaims.isEmpty,
        tally.wrongWrites.isEmpty, tally.overwritten.isEmpty, !isOutOfTime
      {
        if tally.claims >= Self.claims { extra += 1 }
        tally += try await play(server, seed: seed, rounds: Self.rounds)
        seed += 1
        if testsAreLong {
          print("\(tally.claims) claims compared, \(tally.falseClaims.count) false;", terminator: " ")
          print(
            "\(tally.writes.values.reduce(0, +)) writes, \(tally.wrongWrites.count) lost or repeated;", terminator: " ")
          print("\(tally.replacements) values replaced, \(tally.overwritten.count) newer ones")
        }
      }
      #expect(tally.falseClaims == [])
      #expect(tally.wrongWrites == [])
      #expect(tally.overwritten == [])
      if testsAreLong { #expect(tally.refusals["superseded", default: 0] > 0) }
      // Much has happened, and most claims could be compared.
      if !isOutOfTime { #expect(tally.missing == []) }
      #expect(tally.undecided < tally.claims / 4, "\(tally.undecided) of \(tally.claims)")
      print("\(tally)")
    }
  }

  @Test func `a store that makes a false claim is caught`() async throws {
    try await MusterServer.run { server in
      for lie in LyingTransport.Lie.allCases {
        let world = try await StoreWorld(server, seed: Self.seed) { LyingTransport(inner: $0, lie: lie) }
        for _ in 0..<6 where await world.tally.falseClaims.isEmpty { try await world.playRound(actions: 12) }
        await world.end()
        let found = await world.tally.falseClaims
        #expect(!found.isEmpty, "\(lie)")
        // All of them on the phone that was lied to.
        let name = await world.phones[0].name
        #expect(found.allSatisfy { $0.contains(name) }, "\(lie)")
      }
    }
  }

  @Test func `the random writes have all cases`() throws {
    let source = try String(
      contentsOf: Program.checkout.appending(path: "Sources/MusterKit/Outbox/Write.swift"), encoding: .utf8)
    let body = try #require(source.firstMatch(of: /public enum Write\b[^{]*\{([\s\S]*?)\n\}/)).1
    let cases = body.matches(of: /\n  case (\w+)/).map { String($0.1) }
    #expect(cases.count > 20 && Set(cases) == Set(RandomWrites.Kind.allCases.map(\.rawValue)))
  }

  private func play(_ server: MusterServer, seed: UInt64, rounds: Int) async throws -> StoreWorld.Tally {
    let world = try await StoreWorld(server, seed: seed)
    do {
      for round in 0..<rounds {
        try await world.playRound(actions: 10)
        if round == rounds / 2 { try await world.crash() }
      }
      try await world.settle()
    } catch {
      Issue.record("seed \(seed): \(error)")
    }
    await world.end()
    return await world.tally
  }
}
