import Foundation

@testable import MusterKit

/// Moves the time that the service tells, as if it had passed.
struct ShiftedTime: Transport {
  let inner: any Transport
  /// Seconds.
  let passed: Guarded<TimeInterval>

  func send(_ request: TransportRequest) async throws -> TransportResponse {
    var response = try await inner.send(request)
    if let time = response.headers["date"].flatMap(ServiceClock.date) {
      response.headers["date"] = ServiceClock.text(time.addingTimeInterval(passed.withLock { $0 }))
    }
    return response
  }

  func open(_ request: TransportRequest) async throws -> TransportStream { try await inner.open(request) }
}
