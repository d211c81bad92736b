import NIOHTTP1

/// What a client may take, in time and bytes. The defaults are contract 2's.
public struct ConnectionLimits: Sendable {
  /// For a request's line and headers, from the connection's opening or the first byte of a later request.
  public var headSeconds = 10.0
  /// For a request's line and headers.
  public var headBytes = 16 << 10
  /// How far a client may fall behind `bytesPerSecond`.
  public var bodyGrace = 10.0
  /// The least speed of a request's body, and of a client taking in responses.
  public var bytesPerSecond = 1024.0
  /// For a whole body, however fast it comes: the largest takes 23 KiB/s.
  public var uploadSeconds = 90.0
  /// For a kept-alive connection between requests.
  public var idleSeconds = 75.0
  /// For requests still running when the server is told to stop.
  public var shutdownSeconds = 8.0
  /// For a client to take in the last response, once our side is closed.
  public var lingerSeconds = 2.0
  /// The largest body of any route: a client that awaits `100 Continue` before a larger one doesn't get it.
  public var largestBody = 2 << 20
  /// What is still read of a body that was refused unread, to keep its connection.
  public var unwantedBody = 64 << 10
  /// Streams of notifications that a user has open, and those of all users.
  public var streamsPerUser = 5
  public var streams = 10_000
  /// After which a stream on which nothing happens gives a sign of life.
  public var streamHeartbeat = 15.0

  public init() {}
}
