import Foundation
import TestSupport

@testable import MusterKit

/// A folder, a scripted server, and the stores of ana that tests open one after the other, as an app is launched again
/// and again.
@MainActor final class TestStore {
  let server: ScriptedServer
  let folder: URL
  /// Seconds that the clock of the stores is ahead.
  let ahead = Guarded<TimeInterval>(0)
  /// Whether the disk has no room for another byte.
  let isFull = Guarded(false)
  private let tokens: MemoryTokenStore
  private let retries: RetryPolicy
  private let silence: TimeInterval
  private(set) var store: MusterStore

  init(
    _ server: ScriptedServer, folder: URL, silence: TimeInterval = StoreTiming().silence,
    retries: RetryPolicy = .never
  ) throws {
    self.server = server
    self.folder = folder
    self.silence = silence
    self.retries = retries
    tokens = MemoryTokenStore(Self.tokens(of: ScriptedServer.ana.id))
    store = try Self.open(try Self.client(of: server, tokens, retries), folder, ahead, isFull, silence)
  }

  /// Runs a test with a server that has ana's profile, and deletes the folder.
  ///
  /// - Parameter silence: seconds without a response after which a refresh is given up.
  static func run(
    silence: TimeInterval = StoreTiming().silence, retries: RetryPolicy = .never,
    _ body: @MainActor (TestStore, ScriptedServer) async throws -> Void
  ) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "muster-store-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let server = try ScriptedServer.make()
    let test = try TestStore(server, folder: folder, silence: silence, retries: retries)
    try await body(test, server)
    test.store.stop()
  }

  /// Drops the store as a killed app does, and opens it again.
  func relaunch() async throws {
    store.stop()
    store = try await another()
  }

  /// Opens a second store, as another process on the same folder does.
  func another() async throws -> MusterStore {
    let store = try Self.open(try Self.client(of: server, tokens, retries), folder, ahead, isFull, silence)
    await store.load()
    return store
  }

  /// Waits for what a store does by itself.
  func wait(until condition: () throws -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(20)
    while try !condition() {
      guard ContinuousClock.now < deadline else { throw Unexpected("not within 20 seconds") }
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  /// Logs a user in with the client of the store.
  func logIn(_ person: Person) async throws {
    let user = User(id: person.id, username: person.username, displayName: person.displayName, createdAt: .now)
    let tokens = Tokens(user: user, accessToken: "other", refreshToken: "other", expiresIn: 900)
    try await store.client.cache.caller.credentials.adopt(tokens)
  }

  /// The files of the store below its folder.
  var files: [URL] {
    let names = (try? FileManager.default.subpathsOfDirectory(atPath: folder.path)) ?? []
    return names.map { folder.appending(path: $0) }.filter { (try? Data(contentsOf: $0)) != nil }
  }

  private nonisolated static func tokens(of user: User.ID) -> StoredTokens {
    StoredTokens(accessToken: "access", refreshToken: "refresh", accessExpiresAt: .distantFuture, user: user)
  }

  private static func client(
    of server: ScriptedServer, _ tokens: MemoryTokenStore, _ retries: RetryPolicy
  ) throws -> MusterClient {
    guard let url = URL(string: "http://muster.test") else { throw Unexpected("no URL") }
    return MusterClient(baseURL: url, tokens: tokens, transport: server, retries: retries)
  }

  private static func open(
    _ client: MusterClient, _ folder: URL, _ ahead: Guarded<TimeInterval>, _ isFull: Guarded<Bool>,
    _ silence: TimeInterval
  ) throws -> MusterStore {
    var timing = StoreTiming()
    timing.silence = silence
    timing.now = { Date().addingTimeInterval(ahead.withLock { $0 }) }
    timing.firstRetry = 0.02
    timing.maximumRetry = 0.05
    return try MusterStore(
      client: client, folder: folder, timing: timing, writeFile: StoreFolder.writing { isFull.withLock { $0 } })
  }
}

extension StoreFolder {
  /// Writes files, on a disk that is full at times: then half of a file fits.
  static func writing(isFull: @escaping @Sendable () -> Bool) -> WriteFile {
    { data, file in
      guard isFull() else { return try writeFile(data, file) }
      try file.write(contentsOf: data.prefix(data.count / 2))
      throw POSIXError(.ENOSPC)
    }
  }
}

/// The error of a call; nil if it succeeds.
@MainActor func failure(of call: @MainActor () async throws -> Void) async -> MusterError? {
  do {
    try await call()
    return nil
  } catch {
    return error as? MusterError
  }
}
