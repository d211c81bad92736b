import Foundation
import Postgres
import Synchronization

/// Whether announcements on a channel reach this process: it sends one to itself every few seconds. A pooler accepts
/// LISTEN too, and then delivers nothing.
final class Hearing: Sendable {
  /// How long the process relies on an announcement that came back.
  static let lifetime = Duration.seconds(10)
  private static let interval = Duration.seconds(4)

  /// The payload of its own announcements. Those that mean work have none.
  private let word = UUID().uuidString
  private let heardAt = Mutex<ContinuousClock.Instant?>(nil)

  func isCertain(at now: ContinuousClock.Instant) -> Bool {
    heardAt.withLock { $0.map { now < $0 + Self.lifetime } ?? false }
  }

  /// - Returns: whether the event may mean work.
  func note(_ event: ListenerEvent, at now: ContinuousClock.Instant) -> Bool {
    switch event {
    case .notification(_, let payload) where payload == word:
      heardAt.withLock { $0 = now }
      return false
    case .notification(_, let payload): return payload.isEmpty
    case .mayHaveMissed:
      heardAt.withLock { $0 = nil }
      return true
    }
  }

  /// Sends itself announcements until the task is cancelled.
  func speak(on channel: String, in database: Database) async {
    while !Task.isCancelled {
      // If it fails, the process is not certain, and polls often.
      _ = try? await database.batch("SELECT pg_notify(\(channel), \(word))")
      try? await Task.sleep(for: Self.interval)
    }
  }
}
