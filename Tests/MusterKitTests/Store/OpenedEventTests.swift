import Foundation
import MusterKit
import TestSupport
import Testing

/// The screen of one event, online and offline.
@MainActor @Suite struct OpenedEventTests {
  /// How often the phone has heard that its copy is current.
  private let unchanged = Locked(0)

  private func run(_ body: @MainActor (Phone, OpenedEvent, TestUser, TestUser, TestUser) async throws -> Void)
    async throws
  {
    let shared = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: shared.url)
    let cleo = try await TestUser.register("cleo", at: shared.url)
    try await cleo.befriend(ana)
    let event = try await ana.client.events.create(.planned("Picnic", inviting: [ben, cleo]))
    let phone = try await Phone(of: ben, at: shared, wrap: { CountingTransport($0, unchanged) })
    try await phone.catchUp()
    let opened = phone.store.opened(event.id)
    #expect(opened.event?.title == "Picnic")
    try await opened.refresh()
    try await body(phone, opened, ana, ben, cleo)
    await phone.end()
  }

  private func status(of user: TestUser, in opened: OpenedEvent) -> GuestStatus? {
    opened.event?.guests?.items.first { $0.user?.id == user.id }?.status
  }

  @Test func `an opened event has its guests, also after a relaunch without a network`() async throws {
    try await run { phone, opened, _, ben, cleo in
      #expect(status(of: cleo, in: opened) == .invited && status(of: ben, in: opened) == .invited)
      phone.proxy.isOffline = true
      try phone.relaunch()
      let again = phone.store.opened(opened.id)
      try await eventually { again.event?.guests?.items.count == 2 && again.upToDateAsOf == opened.upToDateAsOf }
      await #expect(throws: MusterError.self) { try await again.refresh() }
      #expect(again.event?.guests?.items.count == 2)
    }
  }

  @Test func `an answer shows immediately, and stays when the service has it`() async throws {
    try await run { phone, opened, ana, ben, _ in
      phone.proxy.isOffline = true
      try await phone.store.perform(.answer(.going, to: opened.id))
      #expect(opened.event?.myStatus == .going && opened.hasPendingWrites)
      #expect(status(of: ben, in: opened) == .going)
      phone.proxy.isOffline = false
      try await phone.catchUp()
      #expect(opened.event?.myStatus == .going && !opened.hasPendingWrites)
      #expect(status(of: ben, in: opened) == .going)
      let guests = try await ana.client.events.guests(of: opened.id).items
      #expect(guests.contains { $0.user?.id == ben.id && $0.status == .going })
    }
  }

  @Test func `others' answers arrive with the next refresh, and an unchanged copy is not sent again`() async throws {
    try await run { phone, opened, _, _, cleo in
      try await cleo.client.events.answer(.maybe, to: opened.id)
      try await phone.store.refresh()
      #expect(status(of: cleo, in: opened) == .maybe)
      let before = try #require(opened.upToDateAsOf)
      let count = unchanged.value
      try await opened.refresh()
      #expect(unchanged.value == count + 1)
      #expect(try #require(opened.upToDateAsOf) > before)
    }
  }

  @Test func `a screen that opens with a current copy gets no other one`() async throws {
    try await run { phone, opened, _, _, _ in
      try phone.relaunch()
      let count = unchanged.value
      let again = phone.store.opened(opened.id)
      try await again.refresh()
      #expect(unchanged.value == count + 1 && again.event?.guests?.items.count == 2)
    }
  }

  @Test func `a copy goes with the invitation, although no screen is open`() async throws {
    try await run { phone, opened, ana, ben, _ in
      let file = try #require(
        FileManager.default.enumerator(at: phone.folder, includingPropertiesForKeys: nil)?
          .compactMap { $0 as? URL }.first { $0.lastPathComponent.hasPrefix("\(opened.id)") })
      try phone.relaunch()
      try await phone.catchUp()
      try await ana.client.events.withdraw(Guest.ID(ben.id), from: opened.id)
      try await phone.store.refresh()
      #expect(!FileManager.default.fileExists(atPath: file.path))
    }
  }

  @Test func `an edit that the list has is newer than an old copy`() async throws {
    try await run { phone, opened, ana, _, _ in
      let id = opened.id
      try await ana.client.events.edit(id, applying: EventEdit(title: "Lunch"))
      try phone.relaunch()
      try await phone.store.refresh()
      phone.proxy.isOffline = true
      let again = phone.store.opened(id)
      try await eventually { again.event?.guests != nil }
      #expect(again.event?.title == "Lunch")
    }
  }

  @Test func `an answer that the list has is newer than an old copy, whatever the clock says`() async throws {
    try await run { phone, opened, _, _, cleo in
      phone.clock.set(ahead: 365 * 86_400)
      try await opened.refresh()
      phone.clock.set(ahead: 0)
      try phone.relaunch()
      try await cleo.client.events.answer(.maybe, to: opened.id)
      try await phone.store.refresh()
      try phone.relaunch()
      phone.proxy.isOffline = true
      let again = phone.store.opened(opened.id)
      try await eventually { again.event?.guests != nil }
      #expect(again.event?.counts?.maybe == 1)
    }
  }

  @Test func `an answer that a copy has is newer than an old list, whatever the clock says`() async throws {
    try await run { phone, opened, _, _, cleo in
      phone.clock.set(ahead: 365 * 86_400)
      try await phone.store.refresh()
      phone.clock.set(ahead: 0)
      try await cleo.client.events.answer(.maybe, to: opened.id)
      try await opened.refresh()
      #expect(opened.event?.counts?.maybe == 1)
    }
  }

  @Test func `an event that the user no longer sees is gone, also from the disk`() async throws {
    try await run { phone, opened, ana, ben, _ in
      try await ana.client.events.withdraw(Guest.ID(ben.id), from: opened.id)
      await #expect(throws: MusterError.self) { try await opened.refresh() }
      try await phone.store.refresh()
      #expect(opened.event == nil)
      try phone.relaunch()
      let again = phone.store.opened(opened.id)
      try await Task.sleep(for: .milliseconds(200))
      #expect(again.event == nil)
    }
  }
}

/// Counts responses of 304.
private struct CountingTransport: Transport {
  let transport: any Transport
  let unchanged: Locked<Int>

  init(_ transport: any Transport, _ unchanged: Locked<Int>) {
    self.transport = transport
    self.unchanged = unchanged
  }

  func send(_ request: TransportRequest) async throws -> TransportResponse {
    let response = try await transport.send(request)
    if response.status == 304 { unchanged.change { $0 += 1 } }
    return response
  }

  func open(_ request: TransportRequest) async throws -> TransportStream { try await transport.open(request) }
}
