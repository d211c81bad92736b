import Foundation
import Synchronization
import Testing

@testable import App

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The example client for phones, against the service.
@Suite struct CollectionCacheTests {
  private struct Friend: Decodable {
    struct User: Decodable {
      let id: String
      let displayName: String
      let pictureUrl: URL?
    }

    let user: User
    let since: Date
  }

  private struct Event: Decodable {
    let title: String
    let startTime: Date
  }

  /// The network of a phone.
  private final class Network: Sendable {
    private let phone: Phone
    private let state = Mutex<(isOnline: Bool, paths: [String])>((true, []))

    init(of phone: Phone) {
      self.phone = phone
    }

    var isOnline: Bool {
      get { state.withLock { $0.isOnline } }
      set { state.withLock { $0.isOnline = newValue } }
    }

    /// The requests since the last call.
    func take() -> [String] {
      state.withLock { state in
        defer { state.paths = [] }
        return state.paths
      }
    }

    func send(_ request: URLRequest) async throws -> (body: Data, status: Int) {
      guard isOnline, let url = request.url?.absoluteString else { throw URLError(.notConnectedToInternet) }
      let path = String(url.dropFirst("\(phone.app.url)/api/v1/".count))
      state.withLock { $0.paths.append(path) }
      let body = request.httpBody.map { String(decoding: $0, as: UTF8.self) }
      let answer = try await phone.send(request.httpMethod ?? "GET", path, body)
      return (Data(answer.body.utf8), answer.status)
    }
  }

  /// Launches the app.
  private func launch(_ phone: Phone, _ network: Network, in folder: URL) throws -> CollectionCache {
    let server = try #require(URL(string: phone.app.url))
    return try CollectionCache(folder: folder, server: server, userID: phone.id) { try await network.send($0) }
  }

  private func run(_ body: @escaping @Sendable (TestApp, _ folder: URL) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("cache-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { try await body($0, folder) }
  }

  private func names(in cache: CollectionCache) async throws -> [String]? {
    try await cache.items(of: .friends, as: Friend.self)?.map(\.user.displayName)
  }

  @Test func `a phone launches with one request, and works without a network`() async throws {
    try await run { app, folder in
      let (ana, ben) = try await app.friends("ana", "ben")
      try await ben.createEvent("Picnic", inviting: [ana])
      let network = Network(of: ana)
      let first = try launch(ana, network, in: folder)
      #expect(try await names(in: first) == nil)
      #expect(try await first.refresh())
      #expect(try await names(in: first) == ["Ben"])
      let events = try await first.items(of: .events, as: Event.self)
      #expect(events?.map(\.title) == ["Picnic"])
      #expect(events?.first?.startTime == ISO8601DateFormatter().date(from: "2030-05-01T18:00:00Z"))
      #expect(network.take() == ["cache/validate/\(ana.id)?include=items"])

      network.isOnline = false
      let second = try launch(ana, network, in: folder)
      #expect(try await second.refresh() == false)
      #expect(try await names(in: second) == ["Ben"])

      network.isOnline = true
      #expect(try await second.refresh())
      #expect(try await names(in: second) == ["Ben"])
      #expect(network.take().count == 1)

      try await ben.editProfile(#"{"displayName": "Benjamin"}"#)
      #expect(try await second.refresh())
      #expect(try await names(in: second) == ["Benjamin"])
      #expect(try await names(in: try launch(ana, network, in: folder)) == ["Benjamin"])
      #expect(network.take().count == 1)

      try await second.forgetEverything()
      #expect(try await names(in: try launch(ana, network, in: folder)) == nil)
      try await app.takeNotifications()
    }
  }

  @Test func `a long list is fetched page by page, and again if it changes between two pages`() async throws {
    try await run { app, folder in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(520, around: ana)
      let network = Network(of: ana)
      let cache = try launch(ana, network, in: folder)
      #expect(try await cache.refresh())
      #expect(try await names(in: cache)?.count == 520)
      #expect(network.take().count == 7)
      #expect(try await cache.refresh())
      #expect(network.take().count == 1)

      // A friend on the first page gets a new name before the last page is read.
      let newest = try await ana.get("friends")["items"][0]["user"]["id"].string
      let renamed = try #require(guests.first { $0.id == newest })
      let other = try #require(guests.last { $0.id != newest })
      try await other.editProfile(#"{"displayName": "First"}"#)
      let meddling = try CollectionCache(
        folder: folder, server: try #require(URL(string: app.url)), userID: ana.id
      ) { request in
        let answer = try await network.send(request)
        if request.url?.absoluteString.contains("cursor=") == true {
          try await renamed.editProfile(#"{"displayName": "Second \#(UUID())"}"#)
        }
        return answer
      }
      #expect(try await meddling.refresh())
      let mixed = try await names(in: meddling) ?? []
      #expect(mixed.contains("First"))
      #expect(!mixed.contains { $0.hasPrefix("Second") })
      let later = try launch(ana, network, in: folder)
      #expect(try await later.refresh())
      let right = try await names(in: later) ?? []
      #expect(right.count == 520)
      #expect(right.contains { $0.hasPrefix("Second") })
    }
  }

  @Test func `a copy that cannot be read is fetched again, and a refusal is reported`() async throws {
    try await run { app, folder in
      let (ana, ben) = try await app.friends("ana", "ben")
      let network = Network(of: ana)
      try await launch(ana, network, in: folder).refresh()
      try Data("{".utf8).write(to: folder.appendingPathComponent("friends.json"))
      let cache = try launch(ana, network, in: folder)
      #expect(try await names(in: cache) == nil)
      try await cache.refresh()
      #expect(try await names(in: cache) == ["Ben"])
      let foreign = try CollectionCache(
        folder: folder, server: try #require(URL(string: app.url)), userID: ben.id
      ) { try await network.send($0) }
      let refusal = await #expect(throws: CollectionCache.Refusal.self) { try await foreign.refresh() }
      #expect(refusal?.status == 403)
    }
  }
}
