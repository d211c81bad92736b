import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Random lives of sessions, compared with the contract for each token that is sent. See ``RefreshWorld``.
@Suite struct RefreshPropertyTests {
  /// Set for longer runs.
  private static let worlds = testsAreLong ? 12_000 : 425
  private static let steps = 250
  private static let atOnce = 16

  @Test func `no one is logged out by mistake, and no theft goes unnoticed, whatever happens`() async throws {
    try await TestApp.run { app in
      let database = app.database
      let users = try await people(app, Self.worlds)
      let total = try await withThrowingTaskGroup(of: RefreshReport.self, returning: RefreshReport.self) { group in
        var total = RefreshReport()
        for (seed, user) in users.enumerated() {
          if seed >= Self.atOnce, let report = try await group.next() { total.add(report) }
          group.addTask {
            var world = try RefreshWorld(StoredSessions(database: database, user: user), seed: UInt64(seed))
            try await world.run(steps: Self.steps)
            return world.report
          }
        }
        for try await report in group { total.add(report) }
        return total
      }
      #expect(total.presentations >= 100_000)
      for verdict in RefreshModel.Verdict.allCases {
        #expect(total.verdicts[verdict, default: 0] > 500, "\(verdict) is hardly tried: \(total.verdicts)")
      }
      // Each theft ended its session and sent one notification. Nothing else did either.
      let received = try await app.takeNotifications()
      #expect(received.allSatisfy { $0.type == "session-revoked" })
      #expect(
        received.compactMap { $0.payload["sessionId"].string }.sorted() == total.revoked.map(\.description).sorted())
      #expect(try await app.value("SELECT count(*) FROM sessions WHERE ended_at IS NOT NULL") == total.revoked.count)
    }
  }

  private func people(_ app: TestApp, _ count: Int) async throws -> [User.ID] {
    let users = (0..<count).map { _ in User.ID.new() }
    try await app.database.execute(
      """
      INSERT INTO users (id, username, email, display_name, password_hash)
      SELECT id, 'person' || number, number || '@example.com', 'Person', 'none'
      FROM unnest(\(users)) WITH ORDINALITY AS new (id, number)
      """)
    return users
  }

  // MARK: The test can fail

  /// The first violation that a world finds in an in-memory implementation with a flaw.
  private func violation(
    of flaw: FlawedSessions.Flaw?, worlds: UInt64 = 60, isCompared: Bool = true
  ) async throws -> RefreshViolation? {
    for seed in 0..<worlds {
      var world = try RefreshWorld(FlawedSessions(flaw), seed: seed, isCompared: isCompared)
      do {
        try await world.run(steps: Self.steps)
      } catch let violation as RefreshViolation {
        return violation
      }
    }
    return nil
  }

  @Test func `an implementation without a flaw passes`() async throws {
    for isCompared in [true, false] {
      let violation = try await violation(of: nil, isCompared: isCompared)
      #expect(violation == nil, "\(violation?.description ?? "")")
    }
  }

  @Test func `every flaw is found`() async throws {
    for flaw in FlawedSessions.Flaw.allCases {
      let violation = try await violation(of: flaw)
      #expect(violation?.description.hasPrefix("seed ") == true, "\(flaw)")
    }
  }

  @Test func `the worst flaws are noticed even without the model`() async throws {
    let worst: [(flaw: FlawedSessions.Flaw, kind: RefreshViolation.Kind)] = [
      (.takesRetriesForTheft, .falseLogout), (.takesRestoredForTheft, .falseLogout),
      (.forgetsParentBranch, .falseLogout), (.endsAllSessions, .falseLogout), (.acceptsEverything, .unseenTheft),
    ]
    for (flaw, kind) in worst {
      let violation = try await violation(of: flaw, isCompared: false)
      #expect(violation?.kind == kind, "\(flaw)")
    }
  }
}
