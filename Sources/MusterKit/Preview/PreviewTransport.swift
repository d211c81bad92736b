import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Responds from the folder that `muster seed export` wrote, for previews and tests of views.
///
/// Reads return the demo. Writes are carried out in memory: an answer shows in the lists, makes copies stale and
/// appears on the stream, until the transport is released. Lists are read in pages, and copies are validated, as by the
/// service. The rules are those of the service, as far as the demo tells: requests that it refuses are refused. But there
/// are no rate limits, and all tokens, passwords and codes are accepted.
public final class PreviewTransport: Transport {
  /// The URL for the client.
  public let baseURL: URL
  /// The tokens of a user who is logged in. They are valid forever.
  public let tokens: StoredTokens

  private let state: Guarded<State>

  private struct State {
    var world: PreviewWorld
    var latency: TimeInterval
    var failures: PreviewFailures
    /// The number of requests so far.
    var requests = 0
    /// Responses to writes, by their `Idempotency-Key`.
    var responses: [String: TransportResponse] = [:]
    var streams: [Int: AsyncThrowingStream<Data, any Error>.Continuation] = [:]
  }

  /// - Parameters:
  ///   - folder: an export.
  ///   - latency: seconds that each response takes.
  ///   - failures: what goes wrong.
  /// - Throws: an error of Foundation if the folder has no export.
  public init(folder: URL, latency: TimeInterval = 0, failures: PreviewFailures = .none) throws {
    let export = try PreviewExport(folder: folder)
    baseURL = export.baseURL
    tokens = StoredTokens(
      accessToken: "preview-access-token", refreshToken: "preview-refresh-token", accessExpiresAt: .distantFuture,
      user: export.user)
    state = Guarded(State(world: try PreviewWorld(export), latency: latency, failures: failures))
  }

  /// Seconds that each response takes.
  public var latency: TimeInterval {
    get { state.withLock { $0.latency } }
    set { state.withLock { $0.latency = newValue } }
  }

  /// The failures from now on. Open streams break off when this says that the phone is offline.
  public var failures: PreviewFailures {
    get { state.withLock { $0.failures } }
    set {
      let broken = state.withLock { state in
        state.failures = newValue
        return newValue.isOffline ? Array(state.streams.values) : []
      }
      for stream in broken { stream.finish(throwing: URLError(.networkConnectionLost)) }
    }
  }

  public func send(_ request: TransportRequest) async throws -> TransportResponse {
    if let refusal = try await begin(request).refusal { return refusal }
    let (response, events, streams) = state.withLock { state in
      let response = Self.respond(to: request, &state)
      return (response, state.world.takeNews(), Array(state.streams.values))
    }
    for event in events { for stream in streams { stream.yield(event) } }
    return response.dated()
  }

  public func open(_ request: TransportRequest) async throws -> TransportStream {
    let (chunks, stream) = AsyncThrowingStream<Data, any Error>.makeStream()
    let (number, refusal) = try await begin(request)
    if let refusal {
      stream.yield(refusal.body)
      stream.finish()
      return TransportStream(status: refusal.status, headers: refusal.headers, chunks: chunks)
    }
    state.withLock { $0.streams[number] = stream }
    stream.onTermination = { [weak self] _ in self?.close(number) }
    stream.yield(Data(":\n\n".utf8))
    return TransportStream(status: 200, headers: ["content-type": "text/event-stream"], chunks: chunks)
  }

  private func close(_ number: Int) { state.withLock { _ = $0.streams.removeValue(forKey: number) } }

  /// Waits, and fails if the request is to fail.
  ///
  /// - Returns: the request's number, and a problem in place of the response.
  private func begin(_ request: TransportRequest) async throws -> (number: Int, refusal: TransportResponse?) {
    let (latency, failures, number) = state.withLock { state in
      state.requests += 1
      return (state.latency, state.failures, state.requests)
    }
    if latency > 0 { try await Task.sleep(for: .seconds(latency)) }
    try Task.checkCancellation()
    if failures.isOffline { throw URLError(.notConnectedToInternet) }
    if let nth = failures.everyNth, nth > 0, number.isMultiple(of: nth) { throw URLError(.networkConnectionLost) }
    return (number, failures.problem(for: PreviewRequest(request)).map { .problem($0) })
  }

  private static func respond(to request: TransportRequest, _ state: inout State) -> TransportResponse {
    let key = request.headers["Idempotency-Key"].map { "\(request.method) \(request.url.path) \($0)" }
    if let key, let first = state.responses[key] { return first }
    let response = state.world.response(to: PreviewRequest(request))
    if let key, response.status < 300 { state.responses[key] = response }
    return response
  }
}

extension TransportResponse {
  /// This response with the device's time, as that of the service.
  fileprivate func dated() -> TransportResponse {
    var dated = self
    dated.headers["date"] = ServiceClock.text(.now)
    return dated
  }

  static func problem(_ problem: Problem) -> TransportResponse {
    let body = try? JSONEncoder.muster().encode(problem)
    var headers = ["content-type": "application/problem+json"]
    headers["retry-after"] = problem.retryAfter.map(String.init)
    return TransportResponse(status: problem.status, headers: headers, body: body ?? Data())
  }

  static func json(_ value: some Encodable, status: Int = 200) throws -> TransportResponse {
    let body = try JSONEncoder.muster().encode(value)
    return TransportResponse(status: status, headers: ["content-type": "application/json"], body: body)
  }

  static let noContent = TransportResponse(status: 204)
}
