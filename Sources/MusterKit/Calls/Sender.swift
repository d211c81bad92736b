import Foundation

/// Sends calls over the transport, and repeats them as the policy allows.
struct Sender: Sendable {
  /// While this is set, calls go out for this user only: if another user is logged in, they throw
  /// ``MusterError/loggedOut``.
  @TaskLocal static var actingUser: User.ID?
  /// While this is set, requests are given up early, and it learns of what comes from the service.
  @TaskLocal static var silence: Silence?
  /// While this is set, a call sends one request, and throws an ``Interruption`` where it would refresh, wait or
  /// repeat.
  @TaskLocal private static var isStepwise = false

  private static let maximumProblemBytes = 64 << 10
  private static let maximumRenewals = 3

  let baseURL: URL
  let transport: any Transport
  var retries: RetryPolicy
  let serviceClock = ServiceClock()

  /// Sends a call and decodes the body of its response.
  func get<Value: Decodable>(_ call: APICall, _ credentials: Credentials?) async throws -> Value {
    try Self.decode(try await send(call, credentials))
  }

  /// - Throws: ``MusterError/unexpectedResponse(status:detail:)``
  static func decode<Value: Decodable>(_ response: TransportResponse) throws -> Value {
    do {
      return try JSONDecoder.muster().decode(Value.self, from: response.body)
    } catch {
      throw MusterError.unexpectedResponse(status: response.status, detail: "\(error)")
    }
  }

  /// Sends a call.
  ///
  /// - Parameter credentials: nil for calls without a token.
  /// - Returns: the response that the call expects.
  func send(_ call: APICall, _ credentials: Credentials?) async throws -> TransportResponse {
    if Self.isStepwise { return try await sendOnce(call, credentials) }
    return try await stepwise { try await sendOnce(call, credentials) }
  }

  /// Opens a stream of Server-Sent Events, without repeats.
  func open(_ call: APICall, _ credentials: Credentials) async throws -> TransportStream {
    var call = call
    call.repeats = .never
    return try await stepwise { [call] in
      let tokens = try tokens(of: credentials)
      let request = try request(call, tokens?.accessToken)
      let outcome: Outcome
      do {
        let stream = try await transport.open(request)
        let head = TransportResponse(status: stream.status, headers: stream.headers)
        if call.route.success.matches(head) { return stream }
        outcome = try await Self.refusal(stream)
      } catch {
        try Task.checkCancellation()
        outcome = Outcome(failure: error)
      }
      throw Self.failure(of: call, outcome, tokens, credentials)
    }
  }

  /// Makes a call, request by request. Each run of the body sends one request at most. Refreshes and waits happen
  /// between the runs, so that the body may hold a lock that must not be held for longer than a request.
  func stepwise<R: Sendable>(_ body: @Sendable () async throws -> R) async throws -> R {
    let start = retries.now()
    // From its first request to its last, a call is made for one user.
    var user = Self.actingUser
    var (attempts, renewals) = (0, 0)
    while true {
      try Task.checkCancellation()
      do {
        return try await Self.$actingUser.withValue(user) {
          try await Self.$isStepwise.withValue(true) { try await body() }
        }
      } catch let interruption as Interruption {
        user = interruption.tokens?.user ?? user
        if renewals < Self.maximumRenewals, try await interruption.renew(isFirst: renewals == 0) {
          renewals += 1
          continue
        }
        attempts += 1
        let elapsed = retries.now() - start
        guard let outcome = interruption.outcome,
          let delay = retries.delay(after: outcome, attempts: attempts, elapsed: elapsed, interruption.repeats)
        else { throw interruption.error }
        if outcome.retryAfter != nil { Self.silence?.begin(after: delay) }
        try await retries.sleep(delay)
      }
    }
  }

  private func sendOnce(_ call: APICall, _ credentials: Credentials?) async throws -> TransportResponse {
    let tokens = try tokens(of: credentials)
    let request = try request(call, tokens?.accessToken)
    let outcome: Outcome
    do {
      let response = try await transport.send(request)
      Self.silence?.end()
      let isUnchanged = response.status == 304 && call.headers["If-None-Match"] != nil
      outcome = isUnchanged ? .success(response) : Outcome(response, expecting: call.route.success)
      serviceClock.read(response, of: outcome)
    } catch {
      // A request that was given up before it left the device is no attempt.
      if !(error is UnsentRequest) { try Task.checkCancellation() }
      Self.silence?.giveUpRequest()
      outcome = Outcome(failure: error)
    }
    if case .success(let response) = outcome { return response }
    throw Self.failure(of: call, outcome, tokens, credentials)
  }

  /// The tokens of a request.
  ///
  /// - Throws: ``MusterError/loggedOut`` if there are none, or if they are another user's by now; an ``Interruption``
  ///   if they have expired
  private func tokens(of credentials: Credentials?) throws -> StoredTokens? {
    guard let credentials else { return nil }
    guard let tokens = try credentials.stored() else { throw MusterError.loggedOut }
    guard Self.actingUser == nil || Self.actingUser == tokens.user else { throw MusterError.loggedOut }
    // That saves a request. A clock that is wrong costs one.
    guard tokens.accessExpiresAt > Date() else {
      throw Interruption(outcome: nil, tokens: tokens, credentials: credentials, repeats: .never)
    }
    return tokens
  }

  private static func failure(
    of call: APICall, _ outcome: Outcome, _ tokens: StoredTokens?, _ credentials: Credentials?
  ) -> any Error {
    let interruption = Interruption(
      outcome: outcome, tokens: tokens, credentials: credentials, repeats: call.repeats)
    return interruption.isWorthAnother ? interruption : interruption.error
  }

  private static func refusal(_ stream: TransportStream) async throws -> Outcome {
    var body = Data()
    for try await chunk in stream.chunks {
      body.append(chunk)
      if body.count > maximumProblemBytes { break }
    }
    let response = TransportResponse(status: stream.status, headers: stream.headers, body: body)
    return Outcome(response, expecting: .eventStream)
  }
}

extension Sender {
  /// The characters that a query's value may contain unescaped. A plus sign would be read as a space.
  private static let plainInQuery = CharacterSet(
    charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~,:")

  /// The request that goes over the wire.
  func request(_ call: APICall, _ token: String?) throws -> TransportRequest {
    var headers = call.headers
    headers["Accept"] = call.route.success.mediaType
    if let token { headers["Authorization"] = "Bearer \(token)" }
    let timeout = min(call.timeout, Self.silence?.timeout(of: call.body) ?? .infinity)
    return TransportRequest(
      method: call.route.method, url: try url(of: call), headers: headers, body: call.body, timeout: timeout)
  }

  private func url(of call: APICall) throws -> URL {
    guard var components = URLComponents(url: baseURL, resolvingAgainstBaseURL: true), components.host != nil else {
      throw MusterError.unreachable("\(baseURL) is not the URL of a server.")
    }
    var folder = components.percentEncodedPath
    if folder.hasSuffix("/") { folder.removeLast() }
    components.percentEncodedPath = folder + Route.prefix + call.route.path
    components.percentEncodedQuery = call.query.isEmpty ? nil : call.query.map(Self.encode).joined(separator: "&")
    components.fragment = nil
    guard let url = components.url else { throw MusterError.unreachable("\(baseURL) is not the URL of a server.") }
    return url
  }

  private static func encode(_ parameter: (name: String, value: String)) -> String {
    let value = parameter.value.addingPercentEncoding(withAllowedCharacters: plainInQuery) ?? ""
    return "\(parameter.name)=\(value)"
  }
}

/// Why a call needs something before it can send a request again: a refresh, or a wait.
struct Interruption: Error {
  /// The outcome of the request. Nil if none was sent, because the access token has expired by the device's clock.
  let outcome: Outcome?
  /// The tokens of the request.
  let tokens: StoredTokens?
  let credentials: Credentials?
  let repeats: APICall.Repeats

  /// Gets other tokens, if the tokens are the reason.
  ///
  /// - Parameter isFirst: whether no tokens were renewed during the call.
  /// - Returns: whether there are other tokens, so that the request may be sent again.
  /// - Throws: ``MusterError/loggedOut`` if the session has ended; what a refresh throws
  func renew(isFirst: Bool) async throws -> Bool {
    guard let credentials, let tokens else { return false }
    guard let outcome else {
      try await credentials.refresh(tokens)
      return true
    }
    guard case .problem(let problem) = outcome, problem.status == 401 else { return false }
    switch problem.type {
    case .tokenExpired: try await credentials.refresh(tokens)
    // The service may have replaced its keys.
    case .invalidToken where isFirst: try await credentials.refresh(tokens)
    case .sessionEnded: try await credentials.end(tokens)
    default: return false
    }
    return true
  }

  /// Whether the request may have had its effect.
  var mayHaveHappened: Bool { outcome?.mayHaveHappened ?? false }

  /// Whether a refresh or a wait may help.
  fileprivate var isWorthAnother: Bool {
    guard let outcome else { return true }
    if credentials != nil, case .problem(let problem) = outcome, problem.status == 401 { return true }
    return outcome.allowsRepeat(repeats)
  }

  var error: MusterError { outcome?.error ?? .unreachable("The access tokens expire immediately.") }
}
