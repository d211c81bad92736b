import Foundation
import MusterKit
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
