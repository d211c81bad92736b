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
