import Foundation
import MusterKit
import Postgres
import TestSupport
import Testing

/// A store whose server is killed, gets other keys, or loses its last hours.
@MainActor @Suite struct ServerFailureTests {
  @Test func `a store continues after its server was killed and got new keys`() async throws {
    try await MusterServer.run { @MainActor server in
      let (ana, ben) = try await TestUser.friends("ana", "ben", at: server.url)
      let event = try await ben.client.events.create(.planned("Picnic", inviting: [ana]))
      let phone = try await Phone(of: ana, at: server)
      phone.store.start()
      try await phone.catchUp()
      try await server.kill()
      try await phone.store.perform(.answer(.maybe, to: event.id))
      // The new keys sign, and the old ones still verify.
      try await server.start([
        "MUSTER_ACCESS_TOKEN_KEYS": "\(Muster.newKey()),\(Muster.accessTokenKeys)",
        "MUSTER_REFRESH_TOKEN_KEYS": "\(Muster.newKey()),\(Muster.refreshTokenKeys)",
      ])
      phone.proxy.target = server.port
      try await phone.catchUp()
      #expect(phone.store.events.items.first?.myStatus == .maybe)
      let direct = MusterClient(baseURL: server.url, tokens: ben.tokens, retries: .swift)
      #expect(try await direct.events.guests(of: event.id).items.first?.status == .maybe)
      try await phone.expectTruth()

      // With all keys lost, the user must log in again, and loses no copy.
      try await server.kill()
      // Otherwise the service would not start, so that a mistake logs no one out.
      try await server.endSessions()
      try await server.start([
        "MUSTER_ACCESS_TOKEN_KEYS": Muster.newKey(), "MUSTER_REFRESH_TOKEN_KEYS": Muster.newKey(),
      ])
      phone.proxy.target = server.port
      try await eventually(within: .seconds(20)) {
        if !phone.store.isLoggedOut { try? await phone.store.refresh() }
        return phone.store.isLoggedOut
      }
      #expect(phone.store.events.items.map(\.title) == ["Picnic"] && !phone.store.events.isUpToDate)
      _ = try await phone.client.auth.logIn(as: ana.username, password: ana.password)
      try phone.relaunch()
      try await phone.expectTruth()
      await phone.end()
    }
  }

  @Test func `a restored dump takes the store back to what the server has now`() async throws {
    try await MusterServer.run { @MainActor server in
      let (ana, ben) = try await TestUser.friends("ana", "ben", at: server.url)
      let event = try await ben.client.events.create(.planned("Picnic", inviting: [ana]))
      try await ben.client.events.create(.planned("Quiz", inviting: [ana]))
      let phone = try await Phone(of: ana, at: server)
      try await phone.catchUp()
      _ = try await server.quiet()
      try await server.stop()
      try await server.dump()
      try await server.start()
      phone.proxy.target = server.port
      let direct = MusterClient(baseURL: server.url, tokens: ben.tokens, retries: .swift)

      // A day of changes, which the store has seen.
      try await direct.events.edit(event.id, applying: EventEdit(title: "Lunch"))
      try await direct.events.create(.planned("Undone", inviting: [ana]))
      try await direct.me.edit(ProfileEdit(displayName: "Benjamin"))
      try await phone.store.perform(.answer(.going, to: event.id))
      _ = try await server.quiet()
      try await phone.expectTruth()
      #expect(phone.store.events.items.count == 3)

      try await server.stop()
      try await server.restoreDump()
      try await server.start()
      phone.proxy.target = server.port
      try phone.relaunch()
      try await phone.catchUp()
      #expect(phone.store.events.items.map(\.title) == ["Picnic", "Quiz"])
      #expect(phone.store.friends.items.map(\.user.displayName) == ["ben"])
      try await phone.expectTruth()
      await phone.end()
    }
  }
}
