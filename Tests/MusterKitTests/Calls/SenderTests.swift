import Foundation
import Testing

@testable import MusterKit

@Suite struct SenderTests {
  /// Fails with these before it succeeds.
  private static func failing(
    _ failures: [TransportResponse?], then success: TransportResponse = .emptyPage
  ) -> ScriptedTransport {
    let left = Locked(failures)
    return ScriptedTransport { _ in
      try left.change { failures in
        guard !failures.isEmpty else { return success }
        guard let response = failures.removeFirst() else { throw ScriptedTransport.Lost() }
        return response
      }
    }
  }

  @Test func `a read is repeated until it succeeds`() async throws {
    let transport = Self.failing([nil, .html(status: 502), .problem(.databaseUnavailable, status: 503, retryAfter: 2)])
    let pauses = Pauses()
    #expect(try await MusterClient.scripted(transport, pauses: pauses).friends.list().items == [])
    #expect(pauses.all == [0.25, 0.5, 2.25])
  }

  @Test func `a write keeps its key`() async throws {
    let transport = Self.failing(
      [nil, .problem(.requestRunning, status: 409, retryAfter: 1), .problem(.unknownOutcome, status: 503)],
      then: .noContent)
    let client = try MusterClient.scripted(transport)
    try await client.friends.end(with: .ben)
    #expect(Set(transport.requests.map { $0.headers["Idempotency-Key"] }).count == 1)
    #expect(transport.requests.count == 4)
    try await client.friends.end(with: .ben, key: IdempotencyKey(rawValue: "mine"))
    #expect(transport.requests.last?.headers["Idempotency-Key"] == "mine")
  }

  @Test func `the last failure is thrown when all attempts have failed`() async throws {
    let transport = Self.failing(Array(repeating: nil, count: 9))
    await #expect(throws: MusterError.self) { try await MusterClient.scripted(transport).me.get() }
    #expect(transport.requests.count == 4)
  }

  @Test func `a refusal is not repeated`() async throws {
    let transport = Self.failing([.problem(.eventNotFound, status: 404)])
    let error = await #expect(throws: MusterError.self) {
      try await MusterClient.scripted(transport).events.get(.ben)
    }
    #expect(error?.problem?.type == .eventNotFound)
    #expect(transport.requests.count == 1)
  }

  @Test func `a code is not sent twice if a response gets lost`() async throws {
    let transport = Self.failing([nil])
    await #expect(throws: MusterError.self) {
      try await MusterClient.scripted(transport).auth.logIn(email: "ana@example.com", code: "042137")
    }
    #expect(transport.requests.count == 1)
  }

  @Test func `a registration is repeated only with a password`() async throws {
    for (password, count) in [("plans-with-friends", 2), (nil, 1)] {
      let transport = Self.failing([nil], then: try .tokens(1))
      _ = try? await MusterClient.scripted(transport).auth.register(
        username: "lea", email: "lea@example.com", password: password)
      #expect(transport.requests.count == count)
      #expect(transport.requests.allSatisfy { $0.accessToken == nil && $0.headers["Idempotency-Key"] != nil })
    }
  }

  @Test func `a login page of the network is not a success`() async throws {
    let transport = Self.failing([.html(status: 200)])
    await #expect(throws: MusterError.self) { try await MusterClient.scripted(transport).friends.end(with: .ben) }
  }

  @Test func `paths, queries and ids are written as the service reads them`() async throws {
    let transport = ScriptedTransport { _ in .emptyPage }
    let client = try MusterClient.scripted(transport, baseURL: "https://muster.example/api-gate/")
    _ = try await client.users.search(for: "a+b & ü=?")
    _ = try await client.events.find([.ana, .ben])
    _ = try await client.events.guests(of: .ben, limit: 2, cursor: "a/b=")
    #expect(
      transport.requests.map(\.url.absoluteString) == [
        "https://muster.example/api-gate/api/v1/users?query=a%2Bb%20%26%20%C3%BC%3D%3F",
        "https://muster.example/api-gate/api/v1/events?ids=01900000-0000-7000-8000-000000000001,01900000-0000-7000-8000-0000000000ab",
        "https://muster.example/api-gate/api/v1/events/01900000-0000-7000-8000-0000000000ab/invitations?limit=2&cursor=a%2Fb%3D",
      ])
  }

  @Test(.timeLimit(.minutes(1))) func `a cancelled call throws CancellationError and sends nothing more`() async throws
  {
    let transport = ScriptedTransport { _ in
      try await Task.sleep(for: .seconds(60))
      return .emptyPage
    }
    let client = try MusterClient.scripted(transport)
    let call = Task { try await client.friends.list() }
    while transport.requests.isEmpty { await Task.yield() }
    call.cancel()
    await #expect(throws: CancellationError.self) { try await call.value }
    #expect(transport.requests.count == 1)
  }

  @Test func `a call is never made for another user than it began for`() async throws {
    let store = MemoryTokenStore(.sample(1))
    let client = Locked<MusterClient?>(nil)
    let transport = ScriptedTransport { request in
      if request.url.path.hasSuffix("/login") { return try .tokens(9, user: .ben) }
      _ = try await client.value?.auth.logIn(as: "ben", password: "plans-with-friends")
      throw ScriptedTransport.Lost()
    }
    client.change { $0 = try? MusterClient.scripted(transport, tokens: store) }
    await #expect(throws: MusterError.loggedOut) { try await client.value?.me.removePicture() }
    #expect(transport.requests.filter { $0.method == "DELETE" }.map(\.accessToken) == ["access-1"])
    await #expect(throws: MusterError.loggedOut) {
      try await Sender.$actingUser.withValue(.ana) { try await client.value?.me.removePicture() }
    }
    client.change { $0 = nil }
  }

  @Test func `without tokens nothing is sent`() async throws {
    let transport = ScriptedTransport { _ in .emptyPage }
    let client = try MusterClient.scripted(transport, tokens: MemoryTokenStore())
    await #expect(throws: MusterError.loggedOut) { try await client.friends.list() }
    #expect(client.userID == nil)
    #expect(transport.requests.isEmpty)
  }
}
