import Foundation
import MusterKit
import TestSupport
import Testing

/// The stream against a real server, through connections that break.
@Suite struct NotificationStreamTests {
  /// Invites a user to events with these titles, one after the other.
  private func invite(_ guest: TestUser, by host: TestUser, to titles: [String]) async throws {
    for title in titles { try await host.client.events.create(.planned(title, inviting: [guest])) }
  }

  @Test func `a stream that breaks off again and again has each notification once and in order`() async throws {
    let shared = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: shared.url)
    let proxy = try await HTTPFaultProxy(inFrontOf: shared.port, seed: 7)
    proxy.plan { exchange, random in exchange.isStream ? .cutResponse(.random(in: 0...1, using: &random)) : .none }
    let phone = MusterClient(baseURL: proxy.url, tokens: ana.tokens, retries: .swift)
    let reader = StreamReader(phone.notifications.stream())
    try await eventually { reader.connections > 0 }
    let titles = (1...40).map { "Event \($0)" }
    try await invite(ana, by: ben, to: titles)
    try await eventually(within: .seconds(120)) { reader.titles.count >= titles.count }
    #expect(reader.titles == titles)
    let inbox = try await ana.client.notifications.list(limit: 100).items.filter { $0.type == .eventInvited }
    #expect(reader.notifications.filter { $0.type == .eventInvited } == inbox.reversed())
    #expect(proxy.exchanges.filter(\.isStream).count >= 5)
    await reader.stop()
    await proxy.close()
  }

  @Test func `a stream ends with its session`() async throws {
    let shared = try await MusterServer.shared.value
    let proxy = try await HTTPFaultProxy(inFrontOf: shared.port)
    let ana = try await TestUser.register("ana", at: proxy.url)
    let reader = StreamReader(ana.client.notifications.stream())
    try await eventually { reader.connections == 1 }
    let other = try await ana.logIn(at: shared.url)
    let session = try #require(try await other.client.auth.sessions().items.first { !$0.current })
    try await other.client.auth.endSession(session.id)
    try await eventually { reader.hasEnded }
    #expect(reader.error as? MusterError == .loggedOut)
    #expect(try ana.tokens.load() == nil)
    let requests = proxy.exchanges.count
    await #expect(throws: MusterError.loggedOut) { try await ana.client.me.get() }
    #expect(proxy.exchanges.count == requests)
    await proxy.close()
  }

  @Test func `a cancelled stream closes its connection`() async throws {
    let shared = try await MusterServer.shared.value
    let proxy = try await HTTPFaultProxy(inFrontOf: shared.port)
    let ana = try await TestUser.register("ana", at: proxy.url)
    let reader = StreamReader(ana.client.notifications.stream())
    try await eventually { reader.connections == 1 }
    #expect(proxy.openStreams == 1)
    await reader.stop()
    try await eventually { proxy.openStreams == 0 }
    await proxy.close()
  }

  @Test func `a stream survives a server that is killed`() async throws {
    try await MusterServer.run { server in
      let proxy = try await HTTPFaultProxy(inFrontOf: server.port)
      let (ana, ben) = try await TestUser.friends("ana", "ben", at: proxy.url)
      let reader = StreamReader(ana.client.notifications.stream())
      try await eventually { reader.connections == 1 }
      try await invite(ana, by: ben, to: ["One"])
      try await eventually { reader.titles == ["One"] }
      try await server.kill()
      try await server.start()
      proxy.target = server.port
      try await invite(ana, by: ben, to: ["Two"])
      try await eventually(within: .seconds(20)) { reader.titles == ["One", "Two"] }
      await reader.stop()
      await proxy.close()
    }
  }
}
