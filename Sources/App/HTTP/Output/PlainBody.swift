import HTTPTypes
import HummingbirdCore
import NIOCore

/// The content of a response.
final class PlainBody: ResponseBodyWriter {
  private(set) var bytes = ByteBuffer()

  func write(_ buffer: ByteBuffer) {
    bytes.writeImmutableBuffer(buffer)
  }

  func finish(_ trailingHeaders: HTTPFields?) {}
}
