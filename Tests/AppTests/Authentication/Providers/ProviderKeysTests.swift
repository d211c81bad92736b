import Foundation
import HTTPServer
import Logging
import NIOHTTP1
import ServiceLifecycle
import Synchronization
import Testing
import TestSupport

@testable import App

/// The providers' keys: fetched rarely, kept long enough, and available when the provider is not.
@Suite struct ProviderKeysTests {
  /// A clock that stands still until it is advanced.
  private final class Clock: Sendable {
    private let time = Mutex(ContinuousClock.now)

    var now: ContinuousClock.Instant { time.withLock { $0 } }

    func advance(seconds: Int) {
      time.withLock { $0 += .seconds(seconds) }
    }
  }

  private struct Scene: Sendable {
    let identity: IdentityServer
    let keys: ProviderKeys
    let clock: Clock

    static func play(
      patience: Duration = .seconds(10), trusts: Bool = true, _ body: @escaping @Sendable (Scene) async throws -> Void
    ) async throws {
      try await IdentityServer.run { identity in
        let clock = Clock()
        let outgoing = try Outgoing(trusting: trusts ? identity.certificateFile : nil)
        var timing = ProviderKeys.Timing()
        timing.patience = patience
        timing.now = { clock.now }
        let keys = ProviderKeys(
          url: "\(identity.url)/keys", client: outgoing.client, timing: timing, logger: .quiet)
        do {
          try await body(Scene(identity: identity, keys: keys, clock: clock))
        } catch {
          await outgoing.close()
          throw error
        }
        await outgoing.close()
      }
    }

    func knows(_ id: String) async throws -> Bool {
      try await keys.verifying(id) != nil
    }

    func expect(_ id: String, isKnown: Bool, sourceLocation: SourceLocation = #_sourceLocation) async throws {
      let knows = try await knows(id)
      #expect(knows == isKnown, "\(id)", sourceLocation: sourceLocation)
    }
  }

  @Test func `concurrent requests for the keys cause one fetch`() async throws {
    try await Scene.play { scene in
      scene.identity.behave { $0.delay = .milliseconds(200) }
      let known = try await withThrowingTaskGroup(of: Bool.self) { group in
        for _ in 0..<20 { group.addTask { try await scene.knows("first") } }
        group.addTask {
          await scene.keys.fetch()
          return true
        }
        return try await group.reduce(into: [Bool]()) { $0.append($1) }
      }
      #expect(known == Array(repeating: true, count: 21))
      #expect(scene.identity.fetches == 1)
    }
  }

  @Test func `a cancelled request does not cancel the fetch for others`() async throws {
    try await Scene.play { scene in
      scene.identity.behave { $0.delay = .milliseconds(300) }
      let first = Task { try await scene.knows("first") }
      try await eventually { scene.identity.fetches == 1 }
      async let second = scene.knows("first")
      first.cancel()
      let isKnown = try await second
      #expect(isKnown)
      #expect(scene.identity.fetches == 1)
    }
  }

  @Test func `an unknown key causes at most one fetch a minute`() async throws {
    try await Scene.play { scene in
      await scene.keys.fetch()
      for _ in 1...3 { try await scene.expect("nonsense", isKnown: false) }
      #expect(scene.identity.fetches == 2)
      // Meanwhile, known keys cause no fetch.
      try await scene.expect("first", isKnown: true)
      scene.identity.behave { $0.published = ["second"] }
      scene.clock.advance(seconds: 59)
      try await scene.expect("second", isKnown: false)
      scene.clock.advance(seconds: 2)
      try await scene.expect("second", isKnown: true)
      // A key that the provider has withdrawn is gone.
      try await scene.expect("first", isKnown: false)
      #expect(scene.identity.fetches == 3)
    }
  }

  @Test func `while the provider is down, the known keys stay in use`() async throws {
    try await Scene.play { scene in
      await scene.keys.fetch()
      let failures: [(status: Int, body: String?)] = [
        (500, nil), (200, "nonsense"), (200, "{}"), (200, #"{"keys": []}"#), (404, nil),
      ]
      for (status, body) in failures {
        scene.identity.behave {
          $0.status = status
          $0.body = body
        }
        scene.clock.advance(seconds: 100_000)
        await scene.keys.fetch()
        try await scene.expect("first", isKnown: true)
        try await scene.expect("second", isKnown: false)
      }
    }
  }

  @Test func `without any keys a request fails, and causes at most one fetch a minute`() async throws {
    try await Scene.play { scene in
      scene.identity.behave { $0.status = 500 }
      for _ in 1...3 {
        await #expect(throws: AppError.providerUnavailable) { _ = try await scene.knows("first") }
      }
      #expect(scene.identity.fetches == 1)
      scene.identity.behave { $0.status = 200 }
      scene.clock.advance(seconds: 61)
      try await scene.expect("first", isKnown: true)
    }
  }

  @Test func `a provider that is slow, endless, redirected or untrusted gives no keys`() async throws {
    try await Scene.play(patience: .milliseconds(200)) { scene in
      scene.identity.behave { $0.delay = .seconds(1) }
      await #expect(throws: AppError.providerUnavailable) { _ = try await scene.knows("first") }
    }
    try await Scene.play { scene in
      scene.identity.behave { $0.body = String(repeating: " ", count: 70_000) + #"{"keys": []}"# }
      await #expect(throws: AppError.providerUnavailable) { _ = try await scene.knows("first") }
    }
    try await Scene.play { scene in
      let elsewhere = scene.identity.url + "/elsewhere"
      scene.identity.behave {
        $0.status = 302
        $0.headers = [.location: elsewhere]
      }
      await #expect(throws: AppError.providerUnavailable) { _ = try await scene.knows("first") }
      #expect(scene.identity.fetches == 1)
    }
    try await Scene.play(patience: .milliseconds(500), trusts: false) { scene in
      await #expect(throws: AppError.providerUnavailable) { _ = try await scene.knows("first") }
      #expect(scene.identity.fetches == 0)
    }
  }

  @Test func `keys are kept for as long as the provider says, within bounds`() async throws {
    try await Scene.play { scene in
      let table: [(HTTPHeaders, Duration)] = [
        (["Cache-Control": "public, max-age=3600, must-revalidate", "Age": "600"], .seconds(3000)),
        (["cache-control": "Max-Age=1000"], .seconds(1000)), (["Cache-Control": "no-store"], .seconds(300)),
        ([:], .seconds(300)), (["Cache-Control": "max-age=5"], .seconds(300)),
        (["Cache-Control": "max-age=99999999999999999999"], .seconds(300)),
        (["Cache-Control": "max-age=9999999999"], .seconds(86_400)),
        (["Cache-Control": "max-age=3600", "Age": "9223372036854775807"], .seconds(300)),
        (["Cache-Control": "max-age=-1", "Age": "-1"], .seconds(300)),
      ]
      for (headers, age) in table { #expect(scene.keys.age(headers) == age, "\(headers)") }
    }
  }

  @Test func `keys are fetched in the background, before they are needed, until the process stops`() async throws {
    try await IdentityServer.run { identity in
      let outgoing = try Outgoing(trusting: identity.certificateFile)
      var timing = ProviderKeys.Timing()
      timing.minimumAge = .milliseconds(20)
      timing.maximumAge = .milliseconds(40)
      let keys = ProviderKeys(
        url: "\(identity.url)/keys", client: outgoing.client, timing: timing, logger: .quiet)
      let providers = IdentityProviders([IdentityProvider(.google, clientIDs: ["x"], keys: keys)])
      // A service without any provider ends no sooner than the others.
      let group = ServiceGroup(services: [providers, IdentityProviders([])], logger: .quiet)
      async let running: Void = group.run()
      try await eventually { identity.fetches >= 3 }
      let before = try await keys.verifying("first")
      #expect(before != nil)
      identity.behave { $0.status = 500 }
      let fetches = identity.fetches
      try await eventually { identity.fetches >= fetches + 3 }
      let after = try await keys.verifying("first")
      #expect(after != nil)
      await group.triggerGracefulShutdown()
      try await running
      await outgoing.close()
    }
  }
}
