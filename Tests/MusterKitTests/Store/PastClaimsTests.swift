import Foundation
import Testing

@testable import MusterKit

/// The past events of a store, when requests fail, streams are lost, or processes of the service differ.
@MainActor @Suite struct PastClaimsTests {
  private let event = ScriptedServer.event(1)
  private let past = ScriptedServer.event(2)

  private func run(_ body: @MainActor (TestStore, ScriptedServer) async throws -> Void) async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [event])
      try server.setPast([past])
      try await test.store.refresh()
      #expect(test.store.pastEvents.items == [past] && test.store.pastEvents.isUpToDate)
      try await body(test, server)
    }
  }

  private func claims(_ server: ScriptedServer) -> Int { server.received { $0.body?["pastEvents"] != nil }.count }

  @Test func `digests that the service does not understand stop no list`() async throws {
    try await run { test, server in
      let other = ScriptedServer.event(3)
      try server.setPast([other])
      server.fail { request in
        request.body?["pastEvents"]?["held"]?.string?.isEmpty == false ? .status(422, .invalidFields) : .none
      }
      try await test.store.refresh()
      #expect(test.store.pastEvents.items == [other] && test.store.pastEvents.isUpToDate)
      #expect(test.store.events.isUpToDate && server.received().count == 3)
    }
  }

  @Test func `a process of the service that does not know the list leaves the copy alone`() async throws {
    try await run { test, server in
      // Their digests are not sent with the first request, because there are more than 500.
      let people = (1...501).map { Person(id: ScriptedServer.id(100 + $0), username: "\($0)", displayName: "\($0)") }
      try server.set(.friends, people.map { Friend(user: $0, since: ScriptedServer.noon) })
      try server.setPast(nil)
      try await test.store.refresh()
      #expect(test.store.pastEvents.items == [past] && !test.store.pastEvents.isUpToDate)
      try await test.relaunch()
      #expect(test.store.pastEvents.items == [past])
      try await test.store.refresh()
      #expect(test.store.events.isUpToDate && !test.store.pastEvents.isUpToDate)
      try server.setPast([past])
      try await test.store.refresh()
      #expect(test.store.pastEvents.items == [past] && test.store.pastEvents.isUpToDate)
    }
  }

  @Test func `a lost stream is no reason to read past events, and a refresh is`() async throws {
    try await run { test, server in
      test.store.start()
      try await test.wait { test.store.life.isStreaming && test.store.pastEvents.isUpToDate }
      let count = claims(server)
      test.store.loseStream()
      #expect(!test.store.pastEvents.isUpToDate)
      try await test.wait { test.store.pastEvents.isUpToDate }
      #expect(claims(server) == count)
      test.store.stop()
      try await test.store.refresh()
      #expect(claims(server) > count)
    }
  }

  @Test func `the copy of an event that has left is removed although the past events fail`() async throws {
    try await run { test, server in
      let id = event.id
      try await test.store.opened(id).refresh()
      @MainActor func copies() -> [URL] { test.files.filter { $0.lastPathComponent.hasPrefix(id.wire) } }
      #expect(copies().count == 1)
      try await test.relaunch()
      try server.set(.events, [Event]())
      // They do not fit into the first response.
      try server.setPast([past, ScriptedServer.event(3)])
      server.state.withLock { $0.partsLimit = 1 }
      server.fail { request in
        if request.path == "/events/\(id.wire)" { return .status(404, .eventNotFound) }
        let isAlone = request.body?["pastEvents"] != nil && request.body?["events"] == nil
        return isAlone ? .status(503, .busy) : .none
      }
      guard case .refused = await failure(of: { try await test.store.refresh() }) else {
        Issue.record("no error")
        return
      }
      #expect(test.store.events.items.isEmpty && copies().isEmpty)
    }
  }

  @Test func `an opened past event that is gone is a sign`() async throws {
    try await run { test, server in
      let opened = test.store.opened(past.id)
      server.fail { $0.path.hasPrefix("/events/") ? .status(404, .eventNotFound) : .none }
      try server.setPast([])
      _ = await failure { try await opened.refresh() }
      #expect(!test.store.pastEvents.isUpToDate)
      try await test.store.refresh()
      #expect(test.store.pastEvents.items.isEmpty && test.store.pastEvents.isUpToDate)
    }
  }

  @Test func `earlier events are never those of another user`() async throws {
    try await TestStore.run { test, server in
      let pages = test.store.earlierEvents
      for try await page in pages { #expect(page.items.isEmpty) }
      let count = server.received().count
      try await test.logIn(ScriptedServer.ben)
      let error = await failure { for try await _ in pages {} }
      #expect(error == .loggedOut && server.received().count == count)
    }
  }
}
