import Foundation
import MusterKit
import Postgres
import TestSupport
import Testing

/// Processes with a store that are killed in the middle of their work. See `Tests/TestClient`.
@Suite struct KilledProcessTests {
  /// The writes of one process: the numbers that it printed once they were on the disk.
  private struct Run {
    let performed: [Int]

    init(_ program: Program) {
      performed = program.standardOutput.split(separator: "\n").compactMap { line in
        line.hasPrefix("performed ") ? Int(line.dropFirst(10)) : nil
      }
    }

    /// The write after the last one may also be on the disk.
    var possible: Int? { performed.last.map { $0 + 1 } }
  }

  @Test(arguments: [1, 2])
  func `every write that was on the disk when its process was killed happens once, or is refused for a newer one`(
    processes: Int
  ) async throws {
    let shared = try await MusterServer.shared.value
    let proxy = try await HTTPFaultProxy(inFrontOf: shared.port, seed: 5)
    try await URL.withFolder { folder in
      let tokens = folder.appending(path: "tokens")
      let ana = try await TestUser.register("ana", at: shared.url, tokens: FileTokenStore(file: tokens))
      proxy.plan { _, random in Self.trouble.randomElement(using: &random) ?? .none }
      var random = SeededRandom(seed: 5)
      var runs: [Run] = []
      for round in 0..<5 {
        var programs: [Program] = []
        for number in 0..<processes {
          let first = (round * processes + number) * 3000
          programs.append(
            try await start("writes", proxy, tokens, folder.appending(path: "store").path, String(first)))
        }
        defer { for program in programs { program.signal(SIGKILL) } }
        for program in programs {
          let count = Int.random(in: 1...30, using: &random)
          try await eventually(within: .seconds(60)) {
            if !program.isRunning { throw Unexpected("the program ended: \(program.standardError)") }
            return Run(program).performed.count >= count
          }
          try await Task.sleep(for: .milliseconds(Int.random(in: 0...20, using: &random)))
          program.signal(SIGKILL)
          #expect(try await program.exitStatus() == -SIGKILL)
          runs.append(Run(program))
        }
      }
      let settling = try await start("settle", proxy, tokens, folder.appending(path: "store").path)
      #expect(try await settling.exitStatus() == 0, "\(settling.standardError)")
      // Of two processes, one may change the profile that the other has not seen changed. The user is asked then.
      let lines = settling.standardOutput.split(separator: "\n").filter { line in
        processes == 1 || !(line.contains("editProfile") && line.contains("superseded(by:"))
      }
      #expect(lines == ["pending 0"], "\(settling.standardOutput)")
      try await expectEffects(of: runs, for: ana, inOrder: processes == 1)
    }
    await proxy.close()
  }

  /// The faults of the network: one exchange in two.
  private static let trouble: [HTTPFaultProxy.Fault] = [
    .none, .none, .none, .none, .loseRequest, .loseResponse, .cutResponse(0.6), .delay(milliseconds: 10),
  ]

  private func expectEffects(of runs: [Run], for user: TestUser, inOrder: Bool) async throws {
    var events: [Event] = []
    var cursor: String?
    repeat {
      let page = try await user.client.events.list(limit: 100, cursor: cursor)
      (events, cursor) = (events + page.items, page.nextCursor)
    } while cursor != nil
    let performed = Set(runs.flatMap(\.performed))
    let possible = Set(runs.compactMap(\.possible))
    let numbers = events.compactMap { Int($0.title.dropFirst("Event ".count)) }
    let expected = performed.filter { $0.isMultiple(of: 3) }
    #expect(Set(numbers).count == numbers.count, "an event was created twice")
    #expect(expected.subtracting(numbers) == [], "events are missing")
    #expect(Set(numbers).subtracting(expected).subtracting(possible) == [])
    for (number, event) in zip(numbers, events) where !possible.contains(number + 1) {
      let isEdited = performed.contains(number + 1)
      #expect(event.version == (isEdited ? 2 : 1), "\(number)")
      #expect(event.note == (isEdited ? "Note \(number + 1)" : nil), "\(number)")
    }
    guard inOrder else { return }
    let bios = performed.filter { $0 % 3 == 2 }.sorted()
    let bio = try await user.client.me.get().bio.flatMap { Int($0) }
    #expect(bio == bios.last || bio.map(possible.contains) == true, "\(String(describing: bio)), not \(bios.last ?? 0)")
  }

  @Test func `two processes with one file of tokens refresh once between them`() async throws {
    let shared = try await MusterServer.shared.value
    try await URL.withFolder { folder in
      let tokens = folder.appending(path: "tokens")
      let proxy = try await HTTPFaultProxy(inFrontOf: shared.port)
      let ana = try await ExpiredUser.register("ana", at: proxy.url, tokens: FileTokenStore(file: tokens))
      let programs = [
        try await start("calls", proxy, tokens, "20"), try await start("calls", proxy, tokens, "20"),
      ]
      for program in programs { #expect(try await program.exitStatus() == 0, "\(program.standardError)") }
      #expect(proxy.exchanges.filter { $0.path.hasSuffix("/auth/refresh") }.count == 1)
      try await ana.expectNoTheft(counter: 1)
      await proxy.close()
    }
  }

  @Test func `processes that are killed while they refresh end no session`() async throws {
    let shared = try await MusterServer.shared.value
    try await URL.withFolder { folder in
      let tokens = folder.appending(path: "tokens")
      let proxy = try await HTTPFaultProxy(inFrontOf: shared.port)
      let ana = try await ExpiredUser.register("ana", at: proxy.url, tokens: FileTokenStore(file: tokens))
      let expired = try #require(try ana.tokens.load())
      var random = SeededRandom(seed: 9)
      for round in 0..<6 {
        let refreshes = Tally<String>()
        // The response is on its way, or about to be, when the process dies.
        proxy.plan { exchange, random in
          guard exchange.path.hasSuffix("/auth/refresh") else { return .none }
          refreshes.count("refresh")
          return .delay(milliseconds: Int.random(in: 0...30, using: &random))
        }
        let program = try await start("calls", proxy, tokens, "3")
        try await eventually { refreshes["refresh"] > 0 || !program.isRunning }
        try await Task.sleep(for: .milliseconds(Int.random(in: 0...30, using: &random)))
        program.signal(SIGKILL)
        _ = try await program.exitStatus()
        proxy.plan { _, _ in .none }
        if round.isMultiple(of: 3) { try await ana.age(seconds: 20) }
        #expect(try await ana.relaunch().me.get().id == ana.id)
        #expect(try await ana.session().isOpen)
        try ana.expire(again: expired)
      }
      #expect(try await ana.relaunch().me.get().id == ana.id)
      await proxy.close()
    }
  }

  private func start(
    _ mode: String, _ proxy: HTTPFaultProxy, _ tokens: URL, _ more: String...
  ) async throws -> Program {
    try await Program(Program.path("test-client"), [mode, proxy.url.absoluteString, tokens.path] + more)
  }
}
