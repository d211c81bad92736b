import Foundation
import MusterKit

/// The user's lists, for the completion of names: fresh if the service responds in time, and otherwise this machine's
/// copies. Does not change the copies.
struct CompletionLists: Sendable {
  /// Seconds. With the start of the program, a user hardly notices it.
  private static let usualLimit = 0.2

  private let account: Account
  private let end: ContinuousClock.Instant

  /// - Parameter environment: `MUSTER_COMPLETION_LIMIT` sets another limit, in seconds.
  init(_ account: Account, environment: [String: String] = ProcessInfo.processInfo.environment) {
    self.account = account
    let limit = environment["MUSTER_COMPLETION_LIMIT"].flatMap(Double.init)
    end = .now + .seconds(limit.flatMap { (0...60).contains($0) ? $0 : nil } ?? CompletionLists.usualLimit)
  }

  func friends() async -> [Person] { await items(of: .friends, as: Friend.self).map(\.user) }

  func blocked() async -> [Person] { await items(of: .blocks, as: Block.self).map(\.user) }

  func requests(_ collection: CacheCollection) async -> [FriendRequest] {
    await items(of: collection, as: FriendRequest.self)
  }

  func events() async -> [Event] { await items(of: .events, as: Event.self) }

  /// The event that an earlier word means.
  func event(named name: String) async -> Event? {
    let found = EventMatch.candidates(for: name, in: await events())
    return found.count == 1 ? found.first : nil
  }

  /// The result of a call, if it comes in time.
  func call<Value: Sendable>(_ call: @escaping @Sendable (MusterClient) async throws -> Value) async -> Value? {
    let client = account.client
    return await inTime { try await call(client) }
  }

  private func items<Item: Decodable>(of collection: CacheCollection, as type: Item.Type) async -> [Item] {
    let copies = CopySync(account)
    let copy = await inTime { try await copies.current(collection) } ?? copies.folder.copy(of: collection) ?? ListCopy()
    return copy.keys.compactMap { key in try? copy.items[key]?.item.decode(as: type) }
  }

  /// Does not wait for work that is late: the program ends anyway.
  private func inTime<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async -> Value? {
    let end = end
    let (results, continuation) = AsyncStream<Value?>.makeStream()
    let working = Task { continuation.yield(try? await work()) }
    let waiting = Task {
      try await Task.sleep(until: end, clock: .continuous)
      continuation.yield(nil)
    }
    defer {
      working.cancel()
      waiting.cancel()
    }
    return await results.first { _ in true } ?? nil
  }
}
