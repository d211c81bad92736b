import Foundation
import TestSupport
import Testing

@testable import MusterKit

/// Processes that are killed while their user sends again what was refused. See `Tests/TestClient`.
@Suite struct KilledChoiceTests {
  private static let refusals = 60

  /// The faults of the network: one exchange in two.
  private static let trouble: [HTTPFaultProxy.Fault] = [
    .none, .none, .none, .loseRequest, .loseResponse, .cutResponse(0.6),
  ]

  @Test func `a refusal that is sent again by processes that are killed happens once, and is gone`() async throws {
    let shared = try await MusterServer.shared.value
    let proxy = try await HTTPFaultProxy(inFrontOf: shared.port, seed: 11)
    try await URL.withFolder { folder in
      let tokens = folder.appending(path: "tokens")
      let ana = try await TestUser.register("ana", at: shared.url, tokens: FileTokenStore(file: tokens))
      let store = folder.appending(path: "store")
      try await refuse(of: ana.id, in: store)
      proxy.plan { _, random in Self.trouble.randomElement(using: &random) ?? .none }
      var random = SeededRandom(seed: 11)
      func start(_ mode: String) async throws -> Program {
        try await Program(Program.path("test-client"), [mode, proxy.url.absoluteString, tokens.path, store.path])
      }
      for _ in 0..<12 {
        let program = try await start("again")
        defer { program.signal(SIGKILL) }
        let count = Int.random(in: 0...2, using: &random)
        try await eventually(within: .seconds(60)) { Self.choices(program) >= count || !program.isRunning }
        try await Task.sleep(for: .milliseconds(Int.random(in: 0...10, using: &random)))
        program.signal(SIGKILL)
        _ = try await program.exitStatus()
      }
      let last = try await start("again")
      #expect(try await last.exitStatus() == 0, "\(last.standardError)")
      let settling = try await start("settle")
      #expect(try await settling.exitStatus() == 0, "\(settling.standardError)")
      #expect(settling.standardOutput == "pending 0\n", "\(settling.standardOutput)")
      let titles = try await ana.client.events.list(limit: 100).items.map(\.title)
      #expect(titles.sorted() == (1...Self.refusals).map(Self.title).sorted())
    }
    await proxy.close()
  }

  private static func choices(_ program: Program) -> Int {
    program.standardOutput.split(separator: "\n").count { $0.hasPrefix("again ") }
  }

  private static func title(_ number: Int) -> String { "Event \(number)" }

  /// Leaves refusals in a folder, as a store does.
  private func refuse(of user: User.ID, in folder: URL) async throws {
    let folder = try StoreFolder(in: folder, user: user)
    let files = try OutboxFiles(folder, numbering: RequestCounter(in: folder))
    for number in 1...Self.refusals {
      let record = OutboxRecord(
        id: UUID(), sequence: number, write: .createEvent(.planned(Self.title(number))), key: .random(),
        createdAt: .now, state: .refused(.unknown), attemptedAt: .now)
      _ = try await files.enqueue(record)
    }
  }
}
