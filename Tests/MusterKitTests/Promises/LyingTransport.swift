import Foundation
import MusterKit

/// Falsifies verdicts on caches, so that the store behind it makes false claims.
struct LyingTransport: Transport {
  enum Lie: String, CaseIterable, Sendable {
    /// Calls a stale copy fresh.
    case fresh
    /// Leaves out the last item of a list.
    case lacking
    /// Turns a list around.
    case reversed
  }

  let inner: any Transport
  let lie: Lie

  func send(_ request: TransportRequest) async throws -> TransportResponse {
    var response = try await inner.send(request)
    guard request.url.path().contains("/cache/validate/"), response.status == 200,
      let claims = object(request.body ?? Data()), var verdicts = object(response.body)
    else { return response }
    for (name, verdict) in verdicts {
      guard let verdict = verdict as? [String: Any] else { continue }
      verdicts[name] = falsified(verdict, claim: claims[name])
    }
    response.body = try JSONSerialization.data(withJSONObject: verdicts)
    return response
  }

  func open(_ request: TransportRequest) async throws -> TransportStream { try await inner.open(request) }

  private func object(_ body: Data) -> [String: Any]? {
    (try? JSONSerialization.jsonObject(with: body)) as? [String: Any]
  }

  private func falsified(_ verdict: [String: Any], claim: Any?) -> [String: Any] {
    var verdict = verdict
    let stamp = claim as? String ?? (claim as? [String: Any])?["timestamp"] as? String
    let parts = verdict["parts"] as? [Any] ?? []
    switch lie {
    case .fresh:
      if let stamp { return ["invalidate": false, "timestamp": stamp] }
    case .lacking: verdict["parts"] = verdict["parts"].map { _ in Array(parts.dropLast()) }
    case .reversed: verdict["parts"] = verdict["parts"].map { _ in Array(parts.reversed()) }
    }
    return verdict
  }
}
