import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes

/// An HTTP/1 connection, or one stream of HTTP/2. One task handles its requests, one after the other.
///
/// Hummingbird's own channels pass each part of a request and of a response through `NIOAsyncChannel`. Here, a whole
/// request reaches the task immediately, and a whole response goes back with the question for the next request.
struct HTTPConnection: ServerChildChannelValue {
  typealias Responder = @Sendable (Request, any Channel) async throws -> Response

  let channel: any Channel
  private let handler: NIOLoopBound<HTTPConnectionHandler>

  /// Call this on the channel's event loop, after the handlers before it were added.
  ///
  /// - Parameter isStream: whether the channel is a stream of HTTP/2.
  init(wrapping channel: any Channel, isStream: Bool = false) throws {
    let handler = HTTPConnectionHandler(isStream: isStream)
    try channel.pipeline.syncOperations.addHandler(handler)
    self.channel = channel
    self.handler = NIOLoopBound(handler, eventLoop: channel.eventLoop)
  }

  /// Handles the requests. Returns when the connection is closed.
  func serve(_ responder: Responder, logger: Logger) async {
    await withTaskCancellationHandler {
      do {
        var response: [HTTPResponsePart] = []
        while let request = await next(after: response) {
          response = try await send(try await responder(request, channel))
        }
        channel.close(mode: .output, promise: nil)
      } catch is HTTPParserError {
        channel.eventLoop.execute { [handler] in handler.value.refuse() }
      } catch {
        logger.debug("a connection failed", metadata: ["error": "\(error)"])
        channel.close(promise: nil)
      }
      try? await channel.closeFuture.get()
    } onCancel: {
      channel.eventLoop.execute { [handler] in handler.value.cancel() }
    }
  }

  /// Sends the last parts of a response, and returns the next request; nil after the last.
  private func next(after response: [HTTPResponsePart]) async -> Request? {
    await withCheckedContinuation { continuation in
      channel.eventLoop.execute { [handler] in handler.value.next(after: response, continuation) }
    }
  }

  /// Sends a response, except for its last parts, which it returns.
  private func send(_ response: Response) async throws -> [HTTPResponsePart] {
    let writer = BodyWriter(response, to: self)
    // The first piece of a stream may come much later.
    if response.body.contentLength == nil { try await writer.flush() }
    try await response.body.write(writer)
    return try writer.rest
  }

  /// Returns when the client may get more.
  fileprivate func write(_ parts: [HTTPResponsePart]) async throws {
    let written = channel.eventLoop.makePromise(of: Void.self)
    channel.eventLoop.execute { [handler] in handler.value.write(parts, promise: written) }
    try await written.futureResult.get()
  }
}

/// Sends each piece of a body. A body of one piece waits for the end of the response.
private final class BodyWriter: ResponseBodyWriter {
  private let connection: HTTPConnection
  private let length: Int?
  private var parts: [HTTPResponsePart]
  private var isFinished = false

  init(_ response: Response, to connection: HTTPConnection) {
    self.connection = connection
    length = response.body.contentLength
    parts = [.head(response.head)]
  }

  func write(_ buffer: ByteBuffer) async throws {
    guard buffer.readableBytes > 0 else { return }
    parts.append(.body(buffer))
    if buffer.readableBytes != length { try await flush() }
  }

  func flush() async throws {
    let parts = self.parts
    self.parts = []
    try await connection.write(parts)
  }

  func finish(_ trailers: HTTPFields?) {
    parts.append(.end(trailers))
    isFinished = true
  }

  /// The parts that are not sent yet.
  var rest: [HTTPResponsePart] {
    get throws {
      // The client must not take a part of a body for the complete body.
      guard isFinished else { throw ChannelError.outputClosed }
      return parts
    }
  }
}
