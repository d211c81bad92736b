import Foundation
import Testing

@testable import MusterKit

/// Apps that end at any moment.
@MainActor @Suite struct OutboxCrashTests {
  private let draft = EventDraft(title: "Quiz", startTime: ScriptedServer.noon, timeZone: .lisbon)

  /// The requests are: a validation, the creation, the edit, a validation. Everything from one of them on is lost.
  @Test(arguments: 0...4, [true, false]) func `an app that ends at any request loses nothing and repeats nothing`(
    step: Int, isResponseLost: Bool
  ) async throws {
    try await TestStore.run { test, server in
      try await test.store.refresh()
      let id = Event.ID()
      let first = server.received().count
      server.fail { [server] _ in
        guard server.received().count - first > step else { return .none }
        let isFirst = server.received().count - first == step + 1
        return isFirst && isResponseLost ? .loseResponse : .loseRequest
      }
      try await test.store.perform(.createEvent(draft, id: id))
      try await test.store.perform(.editEvent(id, applying: EventEdit(title: "Quiz 2")))
      for _ in 0..<3 {
        _ = await failure { try await test.store.refresh() }
        #expect(test.store.events.items.map(\.title) == ["Quiz 2"])
        try await test.relaunch()
        #expect(test.store.events.items.map(\.title) == ["Quiz 2"], "The write flickers at a launch.")
      }
      server.fail { _ in .none }
      try await test.store.refresh()
      #expect(test.store.events.items.map(\.title) == ["Quiz 2"] && test.store.events.isUpToDate)
      #expect(test.store.outbox.pending.isEmpty && test.store.outbox.refusals.isEmpty)
      let keys = Dictionary(grouping: server.received(\.isWrite), by: \.method).mapValues { Set($0.map(\.key)).count }
      #expect(keys == ["POST": 1, "PATCH": 1])
      // Nothing is left.
      try await test.relaunch()
      #expect(test.store.outbox.pending.isEmpty && !test.files.contains { $0.path.contains("outbox") })
    }
  }

  @Test func `the order of writes outlives the app`() async throws {
    try await TestStore.run { test, server in
      var event = ScriptedServer.event(1)
      event.myRole = .host
      try server.set(.events, [event])
      try await test.store.refresh()
      for number in 1...12 {
        try await test.store.perform(.editEvent(event.id, applying: EventEdit(title: "\(number)")))
        if number % 3 == 0 { try await test.relaunch() }
      }
      #expect(test.store.events.items.map(\.title) == ["12"])
      try await test.store.refresh()
      // An edit after another one is sent again, on the version that the first one has made.
      let titles = server.received(\.isWrite).compactMap { $0.body?["title"]?.string }
      let order = titles.indices.filter { $0 == 0 || titles[$0 - 1] != titles[$0] }.map { titles[$0] }
      #expect(order == (1...12).map { "\($0)" })
      #expect(test.store.outbox.refusals.isEmpty && test.store.events.items.map(\.title) == ["12"])
    }
  }
}
