import Foundation
import MusterKit

/// A transport whose responses a closure makes up. Remembers the requests.
final class ScriptedTransport: Transport {
  typealias Script = @Sendable (TransportRequest) async throws -> TransportResponse

  /// A request that got lost, or whose response did.
  struct Lost: Error {}

  private let sent = Locked<[TransportRequest]>([])
  private let script: Script
  private let streams: @Sendable (TransportRequest) async throws -> TransportStream

  init(
    _ script: @escaping Script = { _ in throw Lost() },
    streams: @escaping @Sendable (TransportRequest) async throws -> TransportStream = { _ in throw Lost() }
  ) {
    self.script = script
    self.streams = streams
  }

  var requests: [TransportRequest] { sent.value }

  func requests(to path: String) -> [TransportRequest] { requests.filter { $0.url.path == "/api/v1" + path } }

  func send(_ request: TransportRequest) async throws -> TransportResponse {
    sent.change { $0.append(request) }
    return try await script(request)
  }

  func open(_ request: TransportRequest) async throws -> TransportStream {
    sent.change { $0.append(request) }
    return try await streams(request)
  }
}
