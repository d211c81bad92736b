import Foundation
import Testing

@testable import MusterKit

@Suite(.timeLimit(.minutes(1))) struct CredentialsTests {
  /// Refreshes `refresh-1` to the tokens with the number 2, and takes only these.
  private static func server(_ refresh: @escaping ScriptedTransport.Script = { _ in try .tokens(2) })
    -> ScriptedTransport
  {
    ScriptedTransport { request in
      if request.isRefresh { return try await refresh(request) }
      return request.accessToken == "access-2" ? .emptyPage : .problem(.tokenExpired, status: 401)
    }
  }

  @Test func `a token that has expired by the clock is refreshed first`() async throws {
    let transport = Self.server()
    let store = MemoryTokenStore(.sample(1, expiresIn: -1))
    _ = try await MusterClient.scripted(transport, tokens: store).friends.list()
    #expect(transport.requests.map(\.isRefresh) == [true, false])
  }

  @Test func `new tokens are saved before they are used`() async throws {
    let store = MemoryTokenStore(.sample(1))
    let transport = ScriptedTransport { request in
      if request.isRefresh { return try .tokens(2) }
      if request.accessToken == "access-1" { return .problem(.tokenExpired, status: 401) }
      #expect(store.load()?.refreshToken == "refresh-2")
      return .emptyPage
    }
    _ = try await MusterClient.scripted(transport, tokens: store).friends.list()
  }

  @Test func `if new tokens cannot be saved, the call succeeds and the stored token stays in use`() async throws {
    let store = UnreliableTokenStore(.sample(1))
    store.failures.change { $0 = [.save] }
    let expired = Locked("access-1")
    let issued = Locked(1)
    let transport = ScriptedTransport { request in
      if request.isRefresh {
        return try .tokens(
          issued.change {
            $0 += 1; return $0
          })
      }
      return request.accessToken == expired.value ? .problem(.tokenExpired, status: 401) : .emptyPage
    }
    let client = try MusterClient.scripted(transport, tokens: store)
    _ = try await client.friends.list()
    #expect(try store.load()?.refreshToken == "refresh-1")
    store.failures.change { $0 = [] }
    expired.change { $0 = "access-2" }
    _ = try await client.friends.list()
    #expect(transport.requests(to: "/auth/refresh").map(\.refreshToken) == ["refresh-1", "refresh-1"])
    #expect(try store.load()?.refreshToken == "refresh-3")
  }

  @Test(arguments: [
    TransportResponse.problem(.databaseUnavailable, status: 503), .problem(.rateLimited, status: 429, retryAfter: 60),
    .html(status: 401), .html(status: 502), .problem(.internalError, status: 500),
    .problem(.wrongCredentials, status: 401), .json("{}"),
  ])
  func `only an ended session logs out`(response: TransportResponse) async throws {
    let store = MemoryTokenStore(.sample(1))
    let client = try MusterClient.scripted(Self.server { _ in response }, tokens: store)
    let error = await #expect(throws: MusterError.self) { try await client.friends.list() }
    #expect(error != .loggedOut)
    #expect(store.load()?.refreshToken == "refresh-1")
    #expect(client.userID == .ana)
  }

  @Test func `an ended session logs out, at a refresh and at a call`() async throws {
    for isAtRefresh in [true, false] {
      let store = MemoryTokenStore(.sample(1))
      let transport = ScriptedTransport { request in
        .problem(isAtRefresh && !request.isRefresh ? .tokenExpired : .sessionEnded, status: 401)
      }
      let client = try MusterClient.scripted(transport, tokens: store)
      await #expect(throws: MusterError.loggedOut) { try await client.friends.list() }
      #expect(store.load() == nil)
      #expect(client.userID == nil)
    }
  }

  @Test func `a token that the service does not know is refreshed once`() async throws {
    let store = MemoryTokenStore(.sample(1))
    let transport = ScriptedTransport { request in
      request.isRefresh ? try .tokens(2) : .problem(.invalidToken, status: 401)
    }
    let error = await #expect(throws: MusterError.self) {
      try await MusterClient.scripted(transport, tokens: store).friends.list()
    }
    #expect(error?.problem?.type == .invalidToken)
    #expect(transport.requests.map(\.isRefresh) == [false, true, false])
    #expect(store.load() != nil)
  }

  @Test func `cancelling one caller does not cancel the refresh of the others`() async throws {
    let isRefreshing = Locked(false)
    let goOn = AsyncStream<Void>.makeStream()
    let transport = Self.server { _ in
      isRefreshing.change { $0 = true }
      for await _ in goOn.stream { break }
      try Task.checkCancellation()
      return try .tokens(2)
    }
    let client = try MusterClient.scripted(transport)
    let first = Task { try await client.friends.list() }
    while !isRefreshing.value { await Task.yield() }
    let second = Task { try await client.friends.list() }
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    goOn.continuation.yield()
    _ = try await second.value
    #expect(transport.requests(to: "/auth/refresh").count == 1)
  }

  @Test func `another process's refresh is used`() async throws {
    let store = MemoryTokenStore(.sample(1))
    let transport = Self.server()
    let client = try MusterClient.scripted(transport, tokens: store)
    #expect(client.userID == .ana)
    store.save(.sample(2))
    _ = try await client.friends.list()
    #expect(transport.requests(to: "/auth/refresh").isEmpty)
  }

  @Test func `logging out during a refresh does not bring the tokens back`() async throws {
    let isRefreshing = Locked(false)
    let transport = ScriptedTransport { request in
      guard request.isRefresh else { return .problem(.tokenExpired, status: 401) }
      isRefreshing.change { $0 = true }
      try await Task.sleep(for: .seconds(60))
      return try .tokens(2)
    }
    let store = MemoryTokenStore(.sample(1))
    let client = try MusterClient.scripted(transport, tokens: store)
    let call = Task { try await client.friends.list() }
    while !isRefreshing.value { await Task.yield() }
    let loggingOut = Task { try await client.auth.logOut() }
    loggingOut.cancel()
    _ = try await loggingOut.value
    await #expect(throws: MusterError.loggedOut) { try await call.value }
    #expect(store.load() == nil)
  }

  @Test func `a call while the tokens are removed does not bring them back`() async throws {
    let store = UnreliableTokenStore(.sample(1))
    let client = try MusterClient.scripted(ScriptedTransport { _ in .emptyPage }, tokens: store)
    store.beforeClear.change { $0 = { _ = client.userID } }
    try await client.cache.caller.credentials.clear()
    #expect(client.userID == nil)
  }

  @Test func `tokens that are read while the user logs out are not kept`() async throws {
    let store = UnreliableTokenStore(.sample(1))
    let client = try MusterClient.scripted(ScriptedTransport { _ in .emptyPage }, tokens: store)
    let cleared = DispatchSemaphore(value: 0)
    let clearing = Locked<Task<Void, any Error>?>(nil)
    store.afterLoad.change {
      $0 = {
        store.afterLoad.change { $0 = nil }
        clearing.change { $0 = Task { try await client.cache.caller.credentials.clear() } }
        // The logout waits for the lock that this read holds. If it did not wait, it would end in this time.
        _ = cleared.wait(timeout: .now() + 0.5)
      }
    }
    store.afterClear.change { $0 = { cleared.signal() } }
    let reader = Thread { _ = client.userID }
    reader.start()
    while clearing.value == nil { await Task.yield() }
    try await clearing.value?.value
    while !reader.isFinished { await Task.yield() }
    #expect(client.userID == nil)
  }

  @Test func `the end of an earlier session does not touch the next login`() async throws {
    let isRefreshing = Locked(false)
    let goOn = AsyncStream<Void>.makeStream()
    let transport = ScriptedTransport { request in
      if request.url.path.hasSuffix("/login") {
        goOn.continuation.yield()
        return try .tokens(2, user: .ben)
      }
      guard request.isRefresh else {
        return request.accessToken == "access-2" ? .emptyPage : .problem(.tokenExpired, status: 401)
      }
      isRefreshing.change { $0 = true }
      for await _ in goOn.stream { break }
      return .problem(.sessionEnded, status: 401)
    }
    let store = MemoryTokenStore(.sample(1))
    let client = try MusterClient.scripted(transport, tokens: store)
    let call = Task { try await client.friends.list() }
    while !isRefreshing.value { await Task.yield() }
    _ = try await client.auth.logIn(as: "ben", password: "plans-with-friends")
    await #expect(throws: MusterError.loggedOut) { try await call.value }
    #expect(store.load()?.user == .ben && client.userID == .ben)
    _ = try await client.friends.list()
  }

  @Test func `logging out forgets the tokens even without a network`() async throws {
    let store = MemoryTokenStore(.sample(1))
    let transport = ScriptedTransport()
    #expect(try await !MusterClient.scripted(transport, tokens: store).auth.logOut())
    #expect(store.load() == nil)
    #expect(transport.requests(to: "/auth/logout").count == 4)
  }

  @Test func `a store that cannot be read is not a logout`() async throws {
    let store = UnreliableTokenStore(.sample(1))
    store.failures.change { $0 = [.load] }
    let client = try MusterClient.scripted(Self.server(), tokens: store)
    let error = await #expect(throws: MusterError.self) { try await client.friends.list() }
    #expect(error.map { if case .tokensUnavailable = $0 { true } else { false } } == true)
    store.failures.change { $0 = [] }
    _ = try await client.friends.list()
  }

  @Test func `a login whose tokens cannot be saved fails`() async throws {
    let store = UnreliableTokenStore(nil)
    store.failures.change { $0 = [.save] }
    let client = try MusterClient.scripted(ScriptedTransport { _ in try .tokens(1) }, tokens: store)
    let error = await #expect(throws: MusterError.self) {
      try await client.auth.logIn(as: "ana", password: "plans-with-friends")
    }
    #expect(error.map { if case .tokensUnavailable = $0 { true } else { false } } == true)
    #expect(client.userID == nil)
  }
}
