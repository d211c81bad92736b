import Foundation
import Testing

@testable import MusterKit

/// The order of the requests of several processes.
@MainActor @Suite struct RequestCounterTests {
  @Test func `requests that a full disk has not counted come before later ones of other processes`() throws {
    let url = FileManager.default.temporaryDirectory.appending(path: "muster-store-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: url) }
    let folder = try StoreFolder(in: url, user: ScriptedServer.ana.id)
    let (app, other) = (RequestCounter(in: folder), RequestCounter(in: folder))
    #expect([app, other, app].map { $0.next() } == Array(1...3))
    // Nothing can be appended.
    let (file, aside) = (folder.file("requests"), folder.file("aside"))
    try FileManager.default.moveItem(at: file, to: aside)
    try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
    #expect((1...10).map { _ in app.next() } == Array(4...13))
    try FileManager.default.removeItem(at: file)
    try FileManager.default.moveItem(at: aside, to: file)
    #expect([app, other, app].map { $0.next() } == Array(14...16))
  }

  @Test func `after another login, the numbers continue after those of waiting writes`() async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [ScriptedServer.event(1)])
      for _ in 1...10 { try await test.store.refresh() }
      try await test.store.perform(.answer(.going, to: ScriptedServer.event(1).id))
      let seen = try #require(test.store.outbox.unsettled.first?.seenIn)
      #expect(seen >= 10)
      for user in [ScriptedServer.ben, ScriptedServer.ana] {
        try await test.logIn(user)
        try await test.relaunch()
      }
      try await test.store.refresh()
      #expect(test.store.outbox.pending.isEmpty && test.store.outbox.refusals.isEmpty)
      let settled = try #require(try test.store.folder.names(in: "settled").first)
      #expect(try #require(Int(settled.prefix(12))) > seen)
    }
  }
}
