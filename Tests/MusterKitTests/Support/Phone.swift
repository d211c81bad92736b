import Foundation
import TestSupport
import Testing

@testable import MusterKit

/// A device of a user: a store on a folder of its own, behind a network of its own.
@MainActor final class Phone {
  let name: String
  let user: TestUser
  let proxy: HTTPFaultProxy
  let folder: URL
  let clock = PhoneClock()
  /// Whether the disk has no room for another byte.
  let isFull = Guarded(false)
  private(set) var store: MusterStore

  /// Logs in on a new device.
  ///
  /// - Parameters:
  ///   - user: the user, as registered anywhere.
  ///   - wrap: replaces the transport.
  init(
    of user: TestUser, at server: MusterServer, seed: UInt64 = 1, retries: RetryPolicy = .swift,
    wrap: (any Transport) -> any Transport = { $0 }
  ) async throws {
    proxy = try await HTTPFaultProxy(inFrontOf: server.port, seed: seed)
    self.user = try await user.logIn(at: proxy.url, transport: wrap(URLSessionTransport()), retries: retries)
    name = "\(user.username)'s phone \(seed)"
    folder = FileManager.default.temporaryDirectory.appending(path: "muster-phone-\(UUID().uuidString)")
    store = try Self.open(self.user.client, folder, clock, isFull)
  }

  var client: MusterClient { user.client }

  /// Starts the app again, on the same folder.
  func relaunch() throws {
    store.stop()
    store = try Self.open(client, folder, clock, isFull)
  }

  private static func open(
    _ client: MusterClient, _ folder: URL, _ clock: PhoneClock, _ isFull: Guarded<Bool>
  ) throws -> MusterStore {
    var timing = StoreTiming.swift
    timing.now = { clock.now }
    return try MusterStore(
      client: client, folder: folder, timing: timing, writeFile: StoreFolder.writing { isFull.withLock { $0 } })
  }

  /// Ends the app, and deletes what it has stored.
  func end() async {
    store.stop()
    await proxy.close()
    try? FileManager.default.removeItem(at: folder)
  }

  /// Refreshes until it succeeds.
  func catchUp(within limit: Duration = .seconds(20)) async throws {
    var last: (any Error)?
    do {
      try await eventually(within: limit) {
        do {
          try await store.refresh()
          return true
        } catch {
          last = error
          return false
        }
      }
    } catch let error as Unexpected {
      throw Unexpected("\(name) does not catch up \(error): \(String(describing: last))")
    }
  }
}

extension StoreTiming {
  /// Waits a fiftieth of the time before the store acts by itself.
  static let swift = StoreTiming(heartbeat: 50 * StoreTiming().heartbeat, sleep: RetryPolicy.sleepBriefly)
}
