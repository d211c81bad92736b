import HummingbirdCore
import NIOCore
import Postgres

extension NotificationStreams {
  /// An open stream. It ends when this object is released.
  final class Opened: Sendable {
    let stream: NotificationStream
    private let streams: NotificationStreams

    init(_ stream: NotificationStream, of streams: NotificationStreams) {
      self.stream = stream
      self.streams = streams
    }

    deinit { streams.close(stream) }

    /// Sends notifications as fast as the client reads them, until the stream ends.
    @concurrent func write(to writer: inout any ResponseBodyWriter) async throws {
      defer { streams.close(stream) }
      while true {
        switch await stream.next() {
        case .send(let bytes): try await writer.write(bytes)
        case .catchUp(let place): try await catchUp(from: place, to: &writer)
        case .end:
          try await writer.finish(nil)
          return
        }
      }
    }

    @concurrent private func catchUp(from place: Timestamp, to writer: inout any ResponseBodyWriter) async throws {
      let page: InboxReader.Page?
      do {
        page = try await streams.inboxes.page(of: stream.user, after: place)
      } catch let error as PostgresError where error.isUnavailable {
        // Do not hang up: during an outage the client's next attempt is refused, and many clients then give up.
        try await Task.sleep(for: .seconds(1))
        return
      }
      guard let page else { return stream.end() }
      var bytes = ByteBuffer()
      for event in page.events {
        var one = event.bytes
        bytes.writeBuffer(&one)
      }
      if bytes.readableBytes > 0 { try await writer.write(bytes) }
      stream.advance(to: page.end)
      streams.join(stream)
    }
  }
}
