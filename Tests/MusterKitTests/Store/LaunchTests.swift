import Foundation
import MusterKit
import TestSupport
import Testing

/// The cost of a launch with copies, and of long lists.
@MainActor @Suite struct LaunchTests {
  @Test func `a launch after one change of 100 reads one item, and few bytes`() async throws {
    let shared = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: shared.url)
    let events = try await ben.createEvents(100, inviting: [ana])
    let transport = LossyTransport()
    let phone = try await Phone(of: ana, at: shared) { _ in transport }
    try await phone.store.refresh()
    let full = bytes(transport.takeSent())
    #expect(phone.store.events.items.count == 100)

    // Nothing has changed: one request.
    _ = try await shared.quiet()
    try phone.relaunch()
    try await phone.store.refresh()
    let fresh = transport.takeSent()
    #expect(fresh.count == 1 && bytes(fresh) < full / 6, "\(bytes(fresh)) of \(full)")

    try await ben.client.events.edit(events[17].id, applying: EventEdit(title: "Changed"))
    _ = try await shared.quiet()
    try phone.relaunch()
    try await phone.store.refresh()
    let stale = transport.takeSent()
    let verdicts = try #require(stale.first?.response).verdicts()
    #expect(stale.count == 1)
    #expect(verdicts[.events]?.changed?.count == 1 && verdicts[.events]?.keys?.count == 100)
    #expect(verdicts[.friends]?.invalidate == false)
    #expect(bytes(stale) < full / 3, "\(bytes(stale)) of \(full)")
    #expect(phone.store.events.items.contains { $0.title == "Changed" })
    try await phone.expectTruth()
    await phone.end()
  }

  @Test func `lists of more than 500 items, and more than fits into one response, are complete`() async throws {
    try await MusterServer.run(hasWorker: false) { @MainActor server in
      let (ana, ben) = try await TestUser.friends("ana", "ben", at: server.url)
      // Some 700 KiB of events, and 256 KiB fit.
      let events = try await ben.createEvents(560, inviting: [ana], note: String(repeating: "long ", count: 200))
      let transport = LossyTransport()
      let phone = try await Phone(of: ana, at: server) { _ in transport }
      try await phone.store.refresh()
      #expect(phone.store.events.items.count == 560 && phone.store.events.isUpToDate)
      let first = transport.takeSent()
      #expect(try first.contains { try $0.verdicts()[.events]?.missing?.isEmpty == false })
      #expect(first.contains { $0.query?.contains("cursor") == true })
      try await phone.expectTruth()

      // Changes within the first 500, beyond them, and at the border.
      try await ben.client.events.edit(events[3].id, applying: EventEdit(title: "Changed 3"))
      try await ben.client.events.edit(events[540].id, applying: EventEdit(title: "Changed 540"))
      try await ben.client.events.withdraw(Guest.ID(ana.id), from: events[200].id)
      try await ben.client.events.edit(
        events[550].id, applying: EventEdit(startTime: events[0].startTime.addingTimeInterval(-3600)))
      try phone.relaunch()
      try await phone.store.refresh()
      #expect(phone.store.events.items.count == 559)
      #expect(phone.store.events.items.first?.id == events[550].id)
      try await phone.expectTruth()
      await phone.end()
    }
  }

  @Test(arguments: [4, 40])
  func `a damaged copy is read again`(place: Int) async throws {
    let shared = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: shared.url)
    _ = try await ben.createEvents(5, inviting: [ana])
    let phone = try await Phone(of: ana, at: shared)
    try await phone.store.refresh()
    let files = try FileManager.default.subpathsOfDirectory(atPath: phone.folder.path)
    for file in files.map({ phone.folder.appending(path: $0) }) where !file.hasDirectoryPath {
      guard var data = try? Data(contentsOf: file), data.count > 80 else { continue }
      data[data.count * place / 80] ^= 1
      try data.write(to: file)
    }
    try phone.relaunch()
    try await phone.store.refresh()
    #expect(phone.store.events.items.count == 5)
    try await phone.expectTruth()
    await phone.end()
  }

  private func bytes(_ sent: [LossyTransport.Sent]) -> Int {
    sent.reduce(0) { $0 + ($1.body?.count ?? 0) + ($1.response?.count ?? 0) }
  }
}

extension LossyTransport.Sent {
  /// The verdicts of a validation; none of another request.
  func verdicts() throws -> [CacheCollection: Verdict] {
    guard path.contains("/cache/validate/"), let response else { return [:] }
    return try response.verdicts()
  }
}

extension Data {
  fileprivate func verdicts() throws -> [CacheCollection: Verdict] {
    try JSONDecoder().decode([CacheCollection: Verdict].self, from: self)
  }
}

extension TestUser {
  /// Creates events, some at a time.
  ///
  /// - Returns: the events, in the order of their starts.
  func createEvents(_ count: Int, inviting guests: [TestUser], note: String? = nil) async throws -> [Event] {
    var events: [Event] = []
    try await withThrowingTaskGroup(of: Event.self) { group in
      for number in 0..<count {
        if number >= 8, let event = try await group.next() { events.append(event) }
        var draft = EventDraft.planned("Event \(number)", inviting: guests)
        draft.startTime.addTimeInterval(Double(number) * 60)
        draft.note = note
        group.addTask { [draft] in try await client.events.create(draft) }
      }
      for try await event in group { events.append(event) }
    }
    return events.sorted { $0.startTime < $1.startTime }
  }
}
