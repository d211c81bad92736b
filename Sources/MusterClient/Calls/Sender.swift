import Foundation

/// Sends calls over the transport, and repeats them as the policy allows.
struct Sender: Sendable {
  /// While this is set, calls go out for this user only: if another user is logged in, they throw
  /// ``MusterError/loggedOut``.
  @TaskLocal static var actingUser: UUID?

  private static let maximumProblemBytes = 64 << 10

  let baseURL: URL
  let transport: any Transport
  let retries: RetryPolicy

  /// Sends a call and decodes the body of its response.
  func get<Value: Decodable>(_ call: APICall, _ credentials: Credentials?) async throws -> Value {
    let response = try await send(call, credentials)
    do {
      return try JSONDecoder.muster().decode(Value.self, from: response.body)
    } catch {
      throw MusterError.unexpectedResponse(status: response.status, detail: "\(error)")
    }
  }

  /// Sends a call.
  ///
  /// - Parameter credentials: nil for calls without a token.
  /// - Returns: a response of 2xx.
  func send(_ call: APICall, _ credentials: Credentials?) async throws -> TransportResponse {
    let start = retries.now()
    var authorization = Authorization(credentials)
    var attempts = 0
    while true {
      try Task.checkCancellation()
      let tokens = try await authorization.tokens()
      let outcome = try await attempt(call, tokens?.accessToken)
      if case .success(let response) = outcome { return response }
      if try await authorization.renew(tokens, after: outcome) { continue }
      attempts += 1
      let elapsed = retries.now() - start
      guard let delay = retries.delay(after: outcome, attempts: attempts, elapsed: elapsed, call.repeats) else {
        throw outcome.error ?? .unreachable("no outcome")
      }
      try await retries.sleep(delay)
    }
  }

  /// Opens a stream of Server-Sent Events, without repeats.
  func open(_ call: APICall, _ credentials: Credentials) async throws -> TransportStream {
    var authorization = Authorization(credentials)
    while true {
      let tokens = try await authorization.tokens()
      let outcome: Outcome
      do {
        let stream = try await transport.open(request(call, tokens?.accessToken))
        let isEventStream = stream.headers["content-type"]?.lowercased().hasPrefix("text/event-stream") ?? false
        if stream.status == 200, isEventStream { return stream }
        outcome = try await Self.refusal(stream)
      } catch {
        try Task.checkCancellation()
        outcome = Outcome(failure: error)
      }
      if try await authorization.renew(tokens, after: outcome) { continue }
      throw outcome.error ?? .unexpectedResponse(status: 200, detail: "The response is no event stream.")
    }
  }

  private func attempt(_ call: APICall, _ token: String?) async throws -> Outcome {
    let request = try request(call, token)
    do {
      return Outcome(try await transport.send(request))
    } catch {
      try Task.checkCancellation()
      return Outcome(failure: error)
    }
  }

  private static func refusal(_ stream: TransportStream) async throws -> Outcome {
    var body = Data()
    for try await chunk in stream.chunks {
      body.append(chunk)
      if body.count > maximumProblemBytes { break }
    }
    return Outcome(TransportResponse(status: stream.status, headers: stream.headers, body: body))
  }
}
