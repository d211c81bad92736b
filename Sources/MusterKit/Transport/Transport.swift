/// Carries requests to the service: ``URLSessionTransport`` in apps, others in previews and tests.
///
/// Both calls throw only if no complete response arrived; the request may have had its effect. If the task is
/// cancelled, they give up the request and throw `CancellationError`.
public protocol Transport: Sendable {
  /// Sends a request and reads its whole response, whatever its status.
  func send(_ request: TransportRequest) async throws -> TransportResponse

  /// Sends a request and returns as soon as the head of the response is there.
  func open(_ request: TransportRequest) async throws -> TransportStream
}
