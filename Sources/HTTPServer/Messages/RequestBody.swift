import NIOCore
import Synchronization

/// The body of a request: complete, or still arriving.
public struct RequestBody: Sendable {
  enum Storage: Sendable {
    case complete(ByteBuffer)
    case arriving(ArrivingBody)
  }

  let storage: Storage

  init(arriving parts: HTTPConnectionHandler.Body) {
    storage = .arriving(ArrivingBody(parts))
  }

  public init(_ bytes: ByteBuffer = ByteBuffer()) {
    storage = .complete(bytes)
  }

  /// Waits for the end of the request. A body that is still arriving can be read only once.
  ///
  /// - Returns: nil as soon as the body is longer than the limit.
  /// - Throws: ``MalformedRequest``, ``ConnectionLost``, `CancellationError`, or ``BodyAlreadyRead``.
  public func collect(upTo limit: Int) async throws -> ByteBuffer? {
    switch storage {
    case .complete(let bytes):
      return bytes.readableBytes <= limit ? bytes : nil
    case .arriving(let body):
      let parts = try body.take()
      var bytes = ByteBuffer()
      do {
        for try await part in parts {
          guard bytes.readableBytes + part.readableBytes <= limit else { return nil }
          if bytes.readableBytes == 0 { bytes = part } else { bytes.writeImmutableBuffer(part) }
        }
        return bytes
      } catch let error where error is MalformedRequest || error is CancellationError {
        throw error
      } catch {
        throw ConnectionLost()
      }
    }
  }
}

/// The parts of a body that are still arriving. Its sequence would end the process if it were read twice.
final class ArrivingBody: Sendable {
  private let parts: HTTPConnectionHandler.Body
  private let isTaken = Atomic(false)

  fileprivate init(_ parts: HTTPConnectionHandler.Body) {
    self.parts = parts
  }

  fileprivate func take() throws(BodyAlreadyRead) -> HTTPConnectionHandler.Body {
    guard !isTaken.exchange(true, ordering: .relaxed) else { throw BodyAlreadyRead() }
    return parts
  }
}

/// A handler has read a body twice that was still arriving.
public struct BodyAlreadyRead: Error {}

/// The client has disconnected before its request was complete.
public struct ConnectionLost: Error {
  public init() {}
}

/// The rest of a request is not HTTP. The connection refuses it, so that a handler only passes this error on.
public struct MalformedRequest: Error {
  public init() {}
}
