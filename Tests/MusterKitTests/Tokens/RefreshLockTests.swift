import Foundation
import Testing

@testable import MusterKit

/// The lock of the token store during refreshes.
@Suite(.timeLimit(.minutes(1))) struct RefreshLockTests {
  /// Counts the requests of each hold of the lock.
  private final class CountingStore: TokenStore {
    private let store = MemoryTokenStore(.sample(1))
    private let state = Guarded<(isHeld: Bool, requests: [Int])>((false, []))

    var isHeld: Bool { state.withLock { $0.isHeld } }
    var requests: [Int] { state.withLock { $0.requests } }

    func load() -> StoredTokens? { store.load() }
    func save(_ tokens: StoredTokens) { store.save(tokens) }
    func clear() { store.clear() }

    func withRefreshLock<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) async throws -> R {
      try await store.withRefreshLock {
        self.state.withLock { state in
          state.isHeld = true
          state.requests.append(0)
        }
        defer { self.state.withLock { $0.isHeld = false } }
        return try await body()
      }
    }

    func count() {
      state.withLock { state in
        if state.isHeld, let last = state.requests.indices.last { state.requests[last] += 1 }
      }
    }
  }

  private func server(
    _ store: CountingStore, failures: [TransportResponse?], before: @escaping @Sendable () -> Void = {}
  ) -> ScriptedTransport {
    let left = Locked(failures)
    return ScriptedTransport { request in
      guard request.isRefresh else {
        #expect(!store.isHeld)
        return request.accessToken == "access-1" ? .problem(.tokenExpired, status: 401) : .emptyPage
      }
      store.count()
      before()
      return try left.change { failures in
        guard !failures.isEmpty else { return try .tokens(2) }
        guard let response = failures.removeFirst() else { throw ScriptedTransport.Lost() }
        return response
      }
    }
  }

  private func client(_ transport: ScriptedTransport, _ store: CountingStore, _ waits: Locked<[Bool]>) throws
    -> MusterClient
  {
    MusterClient(
      baseURL: try #require(URL(string: "https://muster.example")), tokens: store, transport: transport,
      retries: RetryPolicy(sleep: { _ in waits.change { $0.append(store.isHeld) } }, random: { 1 }, now: { 0 }))
  }

  @Test func `the lock is held for one request at a time, and never while a repeat waits`() async throws {
    let store = CountingStore()
    let waits = Locked<[Bool]>([])
    let failures: [TransportResponse?] = [nil, .html(status: 502), .problem(.busy, status: 503, retryAfter: 1)]
    let client = try client(server(store, failures: failures), store, waits)
    _ = try await client.friends.list()
    #expect(store.requests == [1, 1, 1, 1])
    #expect(waits.value == [false, false, false])
    #expect(store.load()?.refreshToken == "refresh-2")
  }

  @Test func `another process that refreshes while a repeat waits is followed`() async throws {
    let store = CountingStore()
    let transport = server(store, failures: [nil])
    let client = MusterClient(
      baseURL: try #require(URL(string: "https://muster.example")), tokens: store, transport: transport,
      retries: RetryPolicy(sleep: { _ in store.save(.sample(3)) }, random: { 1 }, now: { 0 }))
    _ = try await client.friends.list()
    #expect(transport.requests(to: "/auth/refresh").count == 1)
    #expect(transport.requests.last?.accessToken == "access-3")
  }

  @Test func `a phone that is about to be suspended is not logged out`() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "muster-tokens-\(UUID())")
    defer { try? FileManager.default.removeItem(at: folder) }
    let store = SuspendedStore(lock: FileLock(file: folder.appending(path: "a.lock"), system: { $1(true) }))
    let client = try MusterClient.scripted(
      ScriptedTransport { _ in .problem(.tokenExpired, status: 401) }, tokens: store)
    let error = await #expect(throws: MusterError.self) { try await client.friends.list() }
    guard case .tokensUnavailable = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(client.userID == .ana && error?.isTemporary == true)
  }

  private struct SuspendedStore: TokenStore {
    let lock: FileLock

    func load() -> StoredTokens? { .sample(1) }
    func save(_ tokens: StoredTokens) {}
    func clear() {}

    func withRefreshLock<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) async throws -> R {
      try await lock.withLock(body)
    }
  }
}
