import HTTPTypes
import Logging
import NIOCore
import NIOHTTPTypes

/// An HTTP/1 connection, or one stream of HTTP/2. One task handles its requests, one after the other.
///
/// `NIOAsyncChannel` would pass each part of a request and of a response by itself. Here, a whole request reaches the
/// task immediately, and a whole response goes back with the question for the next request.
struct HTTPConnection: Sendable {
  private let channel: any Channel
  private let handler: NIOLoopBound<HTTPConnectionHandler>

  /// Call this on the channel's event loop, after the handlers before it were added.
  ///
  /// - Parameter isStream: whether the channel is a stream of HTTP/2.
  init(wrapping channel: any Channel, isStream: Bool = false, refuse: @escaping Refusal.Maker) throws {
    let handler = HTTPConnectionHandler(isStream: isStream, refuse: refuse)
    try channel.pipeline.syncOperations.addHandler(handler)
    self.channel = channel
    self.handler = NIOLoopBound(handler, eventLoop: channel.eventLoop)
  }

  /// Handles the requests. Returns when the connection is closed.
  func serve(_ settings: ConnectionSettings) async {
    await withTaskCancellationHandler {
      do {
        let peer = Peer(channel: channel)
        var parts: [HTTPResponsePart] = []
        while let request = await next(after: parts) {
          var response = try await settings.respond(request, peer)
          if response.headers.value(of: .date) == nil { response.headers.append(settings.date.field) }
          parts = try await send(response)
        }
        channel.close(mode: .output, promise: nil)
      } catch is MalformedRequest {
        channel.eventLoop.execute { [handler] in handler.value.refuse() }
      } catch {
        settings.logger.debug("a connection failed", metadata: ["error": "\(error)"])
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

  /// Sends a response, except for its last parts, which it returns. A body that is complete is one of them.
  private func send(_ response: Response) async throws -> [HTTPResponsePart] {
    let head = HTTPResponsePart.head(response.head)
    switch response.body.storage {
    case .empty:
      return [head, .end(nil)]
    case .bytes(let bytes):
      return bytes.readableBytes > 0 ? [head, .body(bytes), .end(nil)] : [head, .end(nil)]
    case .stream(let length, let write):
      let writer = BodyWriter(after: head, length: length, to: self)
      // The first piece of a stream may come much later.
      if length == nil { try await writer.flush() }
      try await write(writer)
      return try writer.rest
    }
  }

  /// Returns when the client may get more.
  fileprivate func write(_ parts: [HTTPResponsePart]) async throws {
    let written = channel.eventLoop.makePromise(of: Void.self)
    channel.eventLoop.execute { [handler] in handler.value.write(parts, promise: written) }
    try await written.futureResult.get()
  }
}

/// Sends each piece of a body. The last piece waits for the end of the response if the length of the body is known.
private final class BodyWriter: ResponseBodyWriter {
  private let connection: HTTPConnection
  /// Bytes of the body that are not written yet; nil if its length is not known.
  private var missing: Int?
  private var parts: [HTTPResponsePart]
  private var isFinished = false

  init(after head: HTTPResponsePart, length: Int?, to connection: HTTPConnection) {
    self.connection = connection
    missing = length
    parts = [head]
  }

  func write(_ bytes: ByteBuffer) async throws {
    guard bytes.readableBytes > 0 else { return }
    guard !isFinished, missing.map({ bytes.readableBytes <= $0 }) ?? true else { throw BodyTooLong() }
    missing = missing.map { $0 - bytes.readableBytes }
    parts.append(.body(bytes))
    if missing != 0 { try await flush() }
  }

  func flush() async throws {
    let parts = self.parts
    self.parts = []
    try await connection.write(parts)
  }

  func finish() {
    guard !isFinished else { return }
    parts.append(.end(nil))
    isFinished = true
  }

  /// The parts that are not sent yet.
  var rest: [HTTPResponsePart] {
    get throws {
      // The client must not take a part of a body for the complete body.
      guard isFinished, missing ?? 0 == 0 else { throw ChannelError.outputClosed }
      return parts
    }
  }
}

/// A response has more bytes than it declares, or some after its end. The client would take them for another response.
struct BodyTooLong: Error {}
