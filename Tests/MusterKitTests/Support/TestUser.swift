import Foundation
import MusterKit
import Testing

/// A registered user, logged in on one device.
struct TestUser: Sendable {
  let id: User.ID
  let username: String
  let password: String
  let tokens: any TokenStore
  let client: MusterClient
  /// The user as others see it.
  var person: Person { get async throws { try await client.me.get().person } }

  /// Registers a user under a name that no other test uses.
  ///
  /// - Parameters:
  ///   - name: the display name, and the beginning of the username.
  ///   - url: the service, or a proxy in front of it.
  static func register(
    _ name: String, at url: URL, tokens: any TokenStore = MemoryTokenStore(),
    transport: any Transport = URLSessionTransport(), retries: RetryPolicy = .swift
  ) async throws -> TestUser {
    let username = "\(name)-\(String(UInt64.random(in: 0...UInt64.max), radix: 36))"
    let password = "correct horse \(username)"
    let client = MusterClient(baseURL: url, tokens: tokens, transport: transport, retries: retries)
    let user = try await client.auth.register(
      username: username, email: "\(username)@example.com", password: password, displayName: name)
    return TestUser(id: user.id, username: username, password: password, tokens: tokens, client: client)
  }

  /// The same user's next device.
  func logIn(
    at url: URL, tokens: any TokenStore = MemoryTokenStore(), transport: any Transport = URLSessionTransport(),
    retries: RetryPolicy = .swift
  ) async throws -> TestUser {
    let client = MusterClient(baseURL: url, tokens: tokens, transport: transport, retries: retries)
    _ = try await client.auth.logIn(as: username, password: password)
    return TestUser(id: id, username: username, password: password, tokens: tokens, client: client)
  }

  func befriend(_ other: TestUser) async throws {
    let request = try await client.friends.requests.send(to: other.id)
    _ = try await other.client.friends.requests.accept(request.id)
  }

  /// Two users who are friends.
  static func friends(_ one: String, _ other: String, at url: URL) async throws -> (TestUser, TestUser) {
    let users = (try await register(one, at: url), try await register(other, at: url))
    try await users.0.befriend(users.1)
    return users
  }
}

extension RetryPolicy {
  /// Waits a fiftieth of the time, and so tries often: on a busy machine, a server may be unavailable for seconds.
  static let swift = RetryPolicy(maximumAttempts: 24, sleep: sleepBriefly)

  /// Sleeps for a fiftieth of a number of seconds.
  static let sleepBriefly: @Sendable (TimeInterval) async throws -> Void = { seconds in
    try await Task.sleep(for: .seconds(seconds / 50))
  }
}

extension EventDraft {
  /// An event in a year that no test reaches.
  static func planned(_ title: String, capacity: Int? = nil, inviting guests: [TestUser] = []) -> EventDraft {
    EventDraft(
      title: title, startTime: Date(timeIntervalSince1970: 1_900_000_000), timeZone: .berlin,
      capacity: capacity, inviteeIds: guests.map(\.id))
  }
}
