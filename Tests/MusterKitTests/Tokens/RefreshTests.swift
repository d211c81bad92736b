import Foundation
import MusterKit
import Postgres
import TestSupport
import Testing

/// A client whose access token has expired.
@Suite struct RefreshTests {
  @Test(arguments: [true, false])
  func `50 parallel calls with an expired access token refresh it once`(isExpiryKnown: Bool) async throws {
    let transport = LossyTransport()
    let ana = try await ExpiredUser.register("ana", transport: transport, isExpiryKnown: isExpiryKnown)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<50 {
        group.addTask {
          switch number % 5 {
          case 0: _ = try await ana.client.events.create(.planned("Event \(number)"))
          case 1: _ = try await ana.client.friends.list()
          case 2: _ = try await ana.client.notifications.list()
          case 3: _ = try await ana.client.events.list()
          default: _ = try await ana.client.me.get()
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(transport.refreshes.count == 1)
    #expect(try await ana.session() == ExpiredUser.SessionRow(counter: 1, isOpen: true))
    let titles = try await ana.client.events.list(limit: 100).items.map(\.title)
    #expect(titles.sorted() == stride(from: 0, to: 50, by: 5).map { "Event \($0)" }.sorted())
    // Without need, nothing is refreshed.
    #expect(transport.refreshes.count == 1)
    if isExpiryKnown { #expect(!transport.sent.contains { $0.status == 401 }) }
  }

  // MARK: Lost responses

  @Test(arguments: [LossyTransport.Loss.ofRequest, .ofResponse])
  func `a lost refresh is repeated with the same token`(loss: LossyTransport.Loss) async throws {
    for losses in 1...3 {
      let transport = LossyTransport()
      let ana = try await ExpiredUser.register("ana", transport: transport)
      transport.plan { sent in sent.isRefresh && sent.number < losses ? loss : nil }
      _ = try await ana.client.me.get()
      #expect(transport.refreshes.count == losses + 1)
      #expect(Set(transport.refreshes.map(\.body)).count == 1)
      try await ana.expectNoTheft(counter: 1)
    }
  }

  @Test func `a refresh that found no network leaves the tokens for the next launch`() async throws {
    try await URL.withFolder { folder in
      let tokens = FileTokenStore(file: folder.appending(path: "tokens"))
      let transport = LossyTransport { _ in .ofResponse }
      let ana = try await ExpiredUser.register("ana", tokens: tokens, transport: transport)
      let before = try tokens.load()
      let error = await #expect(throws: MusterError.self) { try await ana.client.me.get() }
      guard case .unreachable = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(try tokens.load() == before)
      // More than 10 seconds later, the service gives out another token in place of the lost one.
      try await ana.age(seconds: 20)
      let next = ana.relaunch()
      #expect(try await next.me.get().id == ana.id)
      try await ana.expectNoTheft(counter: 1)
      #expect(try tokens.load() != before)
    }
  }

  @Test func `a refresh survives connections that break off at any byte`() async throws {
    let shared = try await MusterServer.shared.value
    let proxy = try await HTTPFaultProxy(inFrontOf: shared.port)
    let ana = try await ExpiredUser.register("ana", at: proxy.url)
    let expired = try #require(try ana.tokens.load())
    for (round, fault) in [
      HTTPFaultProxy.Fault.loseRequest, .cutRequest(0.3), .cutRequest(0.9), .loseResponse, .cutResponse(0.1),
      .cutResponse(0.5), .cutResponse(0.98),
    ].enumerated() {
      let faulty = Once()
      proxy.plan { exchange, _ in exchange.path.hasSuffix("/refresh") && faulty.take() ? fault : .none }
      try ana.expire(again: expired)
      // A client keeps the tokens in memory.
      #expect(try await ana.relaunch().me.get().id == ana.id, "\(fault)")
      try await ana.expectNoTheft(counter: round + 1)
    }
    await proxy.close()
  }

  // MARK: Ends of sessions

  @Test func `an ended session logs out all calls that wait for it, and clears the tokens`() async throws {
    let transport = LossyTransport()
    let ana = try await ExpiredUser.register("ana", transport: transport)
    try await ana.endSession()
    await withTaskGroup(of: MusterError?.self) { group in
      for _ in 0..<20 {
        group.addTask {
          do {
            _ = try await ana.client.me.get()
            return nil
          } catch { return error as? MusterError }
        }
      }
      for await error in group { #expect(error == .loggedOut) }
    }
    #expect(transport.refreshes.count == 1)
    #expect(try ana.tokens.load() == nil)
    #expect(ana.client.userID == nil)
  }

  @Test func `an unavailable service logs no user out`() async throws {
    let shared = try await MusterServer.shared.value
    let proxy = try await HTTPFaultProxy(inFrontOf: shared.port)
    let ana = try await ExpiredUser.register("ana", at: proxy.url)
    proxy.isOffline = true
    let error = await #expect(throws: MusterError.self) { try await ana.client.me.get() }
    guard case .unreachable = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(ana.client.userID == ana.id)
    proxy.isOffline = false
    #expect(try await ana.client.me.get().id == ana.id)
    try await ana.expectNoTheft(counter: 1)
    await proxy.close()
  }
}
