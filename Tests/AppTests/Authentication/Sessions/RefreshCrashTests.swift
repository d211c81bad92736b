import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import App

/// Kills real processes while phones refresh. A phone without a response sends its token again, to another process.
@Suite struct RefreshCrashTests {
  /// Set for longer runs.

  /// Makes a retry come too late to get the same token again.
  private func letTimePass(_ app: TestApp) async throws {
    try await app.database.execute("UPDATE sessions SET rotated_at = rotated_at - interval '11 seconds'")
  }

  @Test func `a service killed between COMMIT and response logs no one out`() async throws {
    try await TestApp.run { app in
      let proxy = try FaultProxy(inFrontOf: app.databaseURL)
      defer { proxy.close() }
      let ana = try await app.signUp("ana")
      let session = try ana.session
      var held = ana.refreshToken
      for round in 1...4 {
        let doomed = try await ServiceProcess(of: app, databaseURL: proxy.url(for: app.databaseURL))
        defer { doomed.program.signal(SIGKILL) }
        let before: Int? = try await app.value("SELECT counter FROM sessions WHERE id = \(session)")
        let heldBefore = proxy.heldCommits
        proxy.mode = .holdCommits
        let shown = held
        let lost = Task { try await doomed.refresh(shown) }
        try await eventually { proxy.heldCommits > heldBefore }
        // The database has committed, but neither the service nor the phone knows it yet.
        let after: Int? = try await app.value("SELECT counter FROM sessions WHERE id = \(session)")
        #expect(after == (before ?? 0) + 1)
        try await doomed.kill()
        await #expect(throws: (any Error).self) { _ = try await lost.value }
        proxy.mode = .forward
        if round % 2 == 0 { try await letTimePass(app) }

        let next = try await ServiceProcess(of: app, databaseURL: proxy.url(for: app.databaseURL))
        defer { next.program.signal(SIGKILL) }
        // The retry succeeds, and both tokens that it returns work.
        for _ in 0..<2 {
          let response = try await next.refresh(held)
          #expect(response.status == 200, "round \(round): \(response.body)")
          held = try #require(response.json["refreshToken"].string)
          let access = response.json["accessToken"].string
          #expect(try await next.app.send("GET", "users/me", token: access).status == 200)
        }
      }
    }
  }

  @Test func `services killed at any moment, again and again, log no one out`() async throws {
    try await TestApp.run { app in
      let place = Place()
      var phones: [Phone] = []
      for number in 1...6 { phones.append(try await app.signUp("person\(number)")) }
      var random = SeededRandom(seed: 4)
      // A phone does not wait for a killed service.
      try await app.withConnections(8, isPatient: false) {
        try await withThrowingTaskGroup(of: Int.self) { group in
          for phone in phones {
            group.addTask {
              try await keepRefreshing(phone.refreshToken, at: place)
            }
          }
          for round in 0..<(testsAreLong ? 200 : 6) {
            let service = try await ServiceProcess(of: app)
            defer { service.program.signal(SIGKILL) }
            place.state.withLock { $0.service = service }
            try await Task.sleep(for: .milliseconds(Int.random(in: 1...150, using: &random)))
            try await service.kill()
            if round % 2 == 0 { try await letTimePass(app) }
          }
          let last = try await ServiceProcess(of: app)
          defer { last.program.signal(SIGKILL) }
          place.state.withLock { $0 = (last, true) }
          for try await refreshed in group { #expect(refreshed > 0) }
        }
      }
      #expect(try await app.value("SELECT count(*) FROM sessions WHERE ended_at IS NOT NULL") == 0)
    }
  }

  /// The service that phones use, and whether they may stop.
  private final class Place: Sendable {
    let state = Mutex<(service: ServiceProcess?, isOver: Bool)>((nil, false))
  }

  /// Acts as a phone: sends its token, keeps the new one, and sends the same one again after a failure.
  ///
  /// - Returns: the number of successful refreshes, with at least one after the end.
  private func keepRefreshing(
    _ token: String, at place: Place
  ) async throws -> Int {
    var (held, refreshed) = (token, 0)
    while true {
      let (service, isOver) = place.state.withLock { $0 }
      guard let service, let response = try? await service.refresh(held), response.status != 503 else {
        try await Task.sleep(for: .milliseconds(5))
        continue
      }
      guard response.status == 200, let next = response.json["refreshToken"].string else {
        throw Unexpected("logged out after \(refreshed) refreshes: \(response.body)")
      }
      held = next
      refreshed += 1
      if isOver { return refreshed }
    }
  }
}
