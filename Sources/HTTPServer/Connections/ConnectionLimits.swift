/// How much time and how many bytes a client may use.
public struct ConnectionLimits: Sendable {
  /// Seconds for a request's line and headers, from the opening of the connection or the first byte of a later request.
  public var headSeconds = 10.0
  /// The largest request line and headers.
  public var headBytes = 16 << 10
  /// Seconds that a client may fall behind `bytesPerSecond`.
  public var bodyGrace = 10.0
  /// The minimum speed at which a client must send a body and receive responses.
  public var bytesPerSecond = 1024.0
  /// Seconds for a whole body, however fast it arrives. The largest body needs 23 KiB/s.
  public var uploadSeconds = 90.0
  /// Seconds that a kept-alive connection may stay idle between requests.
  public var idleSeconds = 75.0
  /// Seconds for requests that are still running when the server begins to stop.
  public var shutdownSeconds = 8.0
  /// Seconds for a client to receive the last response after the server has closed its side.
  public var lingerSeconds = 2.0
  /// The largest body of any route. A client that expects `100 Continue` for a larger one does not get it.
  public var largestBody = 2 << 20
  /// Bytes of a refused body that the server still reads to keep the connection open.
  public var unwantedBody = 64 << 10
  /// Requests in progress on one HTTP/2 connection. Clients keep further ones back. Each may hold a body in memory.
  public var requestsPerConnection = 16

  public init() {}
}
