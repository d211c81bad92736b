import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Carries requests with a `URLSession` of its own, without cookies and caches.
///
/// Redirects are not followed, so that a token never goes to another host: their responses come back as they are.
public final class URLSessionTransport: Transport {
  private let session: URLSession
  private let exchanges: Exchanges
  private let maximumBody: Int

  /// - Parameters:
  ///   - configuration: for proxies, certificates and such. Its cookies and caches are turned off.
  ///   - maximumBody: bytes of a response. A longer one fails.
  public init(configuration: URLSessionConfiguration = .ephemeral, maximumBody: Int = 64 << 20) {
    let configuration = configuration.copy() as? URLSessionConfiguration ?? .ephemeral
    configuration.httpCookieStorage = nil
    configuration.httpShouldSetCookies = false
    configuration.httpCookieAcceptPolicy = .never
    configuration.urlCache = nil
    configuration.urlCredentialStorage = nil
    configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
    // Each open stream occupies one.
    configuration.httpMaximumConnectionsPerHost = max(configuration.httpMaximumConnectionsPerHost, 12)
    exchanges = Exchanges()
    session = URLSession(configuration: configuration, delegate: exchanges, delegateQueue: nil)
    self.maximumBody = maximumBody
  }

  deinit { session.invalidateAndCancel() }

  public func send(_ request: TransportRequest) async throws -> TransportResponse {
    let exchange = begin(request, maximumBacklog: maximumBody)
    defer { exchange.cancel() }
    let head = try await exchange.head()
    var body = Data()
    while let chunk = try await exchange.chunk() {
      guard body.count + chunk.count <= maximumBody else {
        throw URLError(.dataLengthExceedsMaximum)
      }
      body.append(chunk)
    }
    return TransportResponse(status: head.status, headers: head.headers, body: body)
  }

  public func open(_ request: TransportRequest) async throws -> TransportStream {
    let exchange = begin(request, maximumBacklog: Exchange.streamBacklog)
    do {
      let head = try await exchange.head()
      // The stream's closure is all that holds on to the lease.
      let lease = Lease(exchange)
      let chunks = AsyncThrowingStream { try await lease.exchange.chunk() }
      return TransportStream(status: head.status, headers: head.headers, chunks: chunks)
    } catch {
      exchange.cancel()
      throw error
    }
  }

  private func begin(_ request: TransportRequest, maximumBacklog: Int) -> Exchange {
    var urlRequest = URLRequest(url: request.url)
    urlRequest.httpMethod = request.method
    urlRequest.httpBody = request.body
    urlRequest.httpShouldHandleCookies = false
    urlRequest.timeoutInterval = request.timeout
    for (name, value) in request.headers { urlRequest.setValue(value, forHTTPHeaderField: name) }
    #if canImport(FoundationNetworking)
      // A request with a body on a connection that was used before hangs until its timeout if the server has closed the
      // connection: the library connects again by itself, and then has no body to send.
      urlRequest.setValue("close", forHTTPHeaderField: "Connection")
    #endif
    let exchange = Exchange(session.dataTask(with: urlRequest), maximumBacklog: maximumBacklog)
    exchanges.begin(exchange)
    return exchange
  }
}

/// Closes a stream's connection when the stream is released.
private final class Lease: Sendable {
  let exchange: Exchange

  init(_ exchange: Exchange) { self.exchange = exchange }

  deinit { exchange.cancel() }
}

/// A request and its response, while they are under way. One task reads the response.
private final class Exchange: Sendable {
  /// Bytes of a stream that wait for a slow reader. With more, the stream breaks off.
  static let streamBacklog = 4 << 20

  struct Head: Sendable {
    let status: Int
    /// The names are in lower case.
    let headers: [String: String]
  }

  private enum Step: Sendable {
    case head(Head)
    case chunk(Data)
    case end
    case failure(any Error)
  }

  private struct State {
    var head: Head?
    /// The bytes that have arrived and were not read yet.
    var waiting = Data()
    /// The number of bytes that the head announces, if it does.
    var expected: Int64?
    var received: Int64 = 0
    var end: Result<Void, any Error>?
    var reader: (wantsHead: Bool, continuation: CheckedContinuation<Step, Never>)?
    #if !canImport(FoundationNetworking)
      /// Whether each attempt has sent a part of the request. Nil until the metrics are there.
      var attempts: [Bool]?
    #endif

    mutating func step(wantsHead: Bool) -> Step? {
      if wantsHead, let head { return .head(head) }
      if !wantsHead, !waiting.isEmpty {
        defer { waiting = Data() }
        return .chunk(waiting)
      }
      switch end {
      case nil: return nil
      case .success where wantsHead: return .failure(URLError(.badServerResponse))
      case .success: return .end
      case .failure(let error): return .failure(error)
      }
    }
  }

  let task: URLSessionDataTask
  private let maximumBacklog: Int
  private let silence = Sender.silence
  private let state = Guarded(State())

  init(_ task: URLSessionDataTask, maximumBacklog: Int) {
    self.task = task
    self.maximumBacklog = maximumBacklog
  }

  // MARK: For the reader

  func head() async throws -> Head {
    switch await next(wantsHead: true) {
    case .head(let head): return head
    case .failure(let error): throw error
    case .chunk, .end: throw URLError(.badServerResponse)
    }
  }

  /// The next bytes; nil at the end.
  func chunk() async throws -> Data? {
    switch await next(wantsHead: false) {
    case .chunk(let data): return data
    case .end: return nil
    case .failure(let error): throw error
    case .head: throw URLError(.badServerResponse)
    }
  }

  private func next(wantsHead: Bool) async -> Step {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let step = state.withLock { state -> Step? in
          let step = state.step(wantsHead: wantsHead)
          if step == nil { state.reader = (wantsHead, continuation) }
          return step
        }
        if let step { continuation.resume(returning: step) }
      }
    } onCancel: {
      #if canImport(FoundationNetworking)
        finish(.failure(CancellationError()))
      #endif
      // Elsewhere, the metrics at the end of the task tell whether the request was sent.
      task.cancel()
    }
  }

  /// Gives up the request, if it is still under way.
  func cancel() {
    if finish(.failure(CancellationError())) { task.cancel() }
  }

  // MARK: For the session's delegate

  func begin(_ response: HTTPURLResponse) {
    var headers: [String: String] = [:]
    for (name, value) in response.allHeaderFields {
      headers["\(name)".lowercased()] = "\(value)"
    }
    let hasPlainBody =
      headers["content-encoding"] == nil && response.statusCode != 304 && task.originalRequest?.httpMethod != "HEAD"
    let head = Head(status: response.statusCode, headers: headers)
    change { state in
      state.head = head
      state.expected = hasPlainBody ? headers["content-length"].flatMap(Int64.init) : nil
    }
  }

  func add(_ data: Data) {
    silence?.end()
    var isTooMuch = false
    change { state in
      guard state.end == nil else { return }
      state.waiting.append(data)
      state.received += Int64(data.count)
      isTooMuch = state.waiting.count > maximumBacklog
    }
    if isTooMuch, finish(.failure(URLError(.dataLengthExceedsMaximum))) { task.cancel() }
  }

  func complete(_ error: (any Error)?) {
    guard let error else { return _ = finish(.success(())) }
    finish(.failure(isUnsent(error) ? UnsentRequest(error) : error))
  }

  #if canImport(FoundationNetworking)
    /// The beginnings of libcurl's messages for attempts that found no address or no connection.
    private static let unsentMessages = [
      "Could not resolve host", "Failed to connect to", "Couldn't connect to server",
    ]

    /// On Linux, there are no metrics, and the code is not enough: a lost response also gets `cannotConnectToHost` if the
    /// first of the host's addresses refused the connection. All other errors, such as those of TLS, may come before or
    /// after the request.
    private func isUnsent(_ error: any Error) -> Bool {
      guard let error = error as? URLError, [.cannotConnectToHost, .cannotFindHost].contains(error.code) else {
        return false
      }
      return Self.unsentMessages.contains { error.localizedDescription.hasPrefix($0) }
    }
  #else
    /// Errors of tasks that found no network, no address or no connection.
    private static let unsentCodes: Set<URLError.Code> = [
      .notConnectedToInternet, .dataNotAllowed, .internationalRoamingOff, .callIsActive, .cannotFindHost,
      .dnsLookupFailed, .cannotConnectToHost, .appTransportSecurityRequiresSecureConnection,
    ]

    /// The metrics come before the end of the task. Without them, the request counts as sent. An error alone does not
    /// tell, such as that of TLS, which may come before or after the request.
    private func isUnsent(_ error: any Error) -> Bool {
      guard let attempts = state.withLock({ $0.attempts }) else { return false }
      let isKnown = (error as? URLError).map { Self.unsentCodes.contains($0.code) } ?? false
      return attempts.isEmpty ? isKnown : !attempts.contains(true)
    }

    func collect(_ metrics: URLSessionTaskMetrics) {
      let attempts = metrics.transactionMetrics.map {
        $0.requestStartDate != nil || $0.countOfRequestHeaderBytesSent > 0
      }
      state.withLock { $0.attempts = attempts }
    }
  #endif

  /// - Returns: whether this ended the exchange.
  @discardableResult
  private func finish(_ result: Result<Void, any Error>) -> Bool {
    var isFirst = false
    change { state in
      guard state.end == nil else { return }
      isFirst = true
      let isCut = state.expected.map { state.received < $0 } ?? false
      if case .success = result, isCut {
        state.end = .failure(URLError(.networkConnectionLost))
      } else {
        state.end = result
      }
    }
    return isFirst
  }

  private func change(_ body: (inout State) -> Void) {
    let woken = state.withLock { state -> (CheckedContinuation<Step, Never>, Step)? in
      body(&state)
      guard let reader = state.reader, let step = state.step(wantsHead: reader.wantsHead) else { return nil }
      state.reader = nil
      return (reader.continuation, step)
    }
    if let (continuation, step) = woken { continuation.resume(returning: step) }
  }
}

/// A session's delegate: passes what arrives to the exchange that it belongs to.
private final class Exchanges: NSObject, URLSessionDataDelegate {
  private let running = Guarded([Int: Exchange]())

  func begin(_ exchange: Exchange) {
    running.withLock { $0[exchange.task.taskIdentifier] = exchange }
    exchange.task.resume()
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    if let response = response as? HTTPURLResponse { exchange(of: dataTask)?.begin(response) }
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    exchange(of: dataTask)?.add(data)
  }

  #if !canImport(FoundationNetworking)
    func urlSession(
      _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
      exchange(of: task)?.collect(metrics)
    }
  #endif

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let exchange = running.withLock { $0.removeValue(forKey: task.taskIdentifier) }
    exchange?.complete(error)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    completionHandler(nil)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    let space = challenge.protectionSpace
    let methods = [NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest]
    // Muster asks for no passwords: let the response come back as it is.
    let isForeign = !space.isProxy() && methods.contains(space.authenticationMethod)
    completionHandler(isForeign ? .rejectProtectionSpace : .performDefaultHandling, nil)
  }

  private func exchange(of task: URLSessionTask) -> Exchange? {
    running.withLock { $0[task.taskIdentifier] }
  }
}
