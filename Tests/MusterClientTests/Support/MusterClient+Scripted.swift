import Foundation
import MusterClient
import Testing

extension MusterClient {
  /// A client of a server that does not exist. It does not wait between repeats.
  static func scripted(
    _ transport: ScriptedTransport, tokens: any TokenStore = MemoryTokenStore(.sample(1)), pauses: Pauses = Pauses(),
    baseURL: String = "https://muster.example"
  ) throws -> MusterClient {
    MusterClient(
      baseURL: try #require(URL(string: baseURL)), tokens: tokens, transport: transport,
      retries: RetryPolicy(sleep: pauses.sleep, random: { 1 }, now: pauses.now))
  }
}

/// A clock that moves only when a client waits.
final class Pauses: Sendable {
  private let waits = Locked<[TimeInterval]>([])

  /// Seconds.
  var all: [TimeInterval] { waits.value }

  var sleep: @Sendable (TimeInterval) async throws -> Void {
    { seconds in
      try Task.checkCancellation()
      self.waits.change { $0.append(seconds) }
      await Task.yield()
    }
  }

  var now: @Sendable () -> TimeInterval { { self.all.reduce(0, +) } }
}
