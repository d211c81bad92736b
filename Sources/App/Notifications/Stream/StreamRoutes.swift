import HTTPServer
import Postgres

/// Streams notifications to clients as they arrive in the inbox.
struct StreamRoutes {
  private static let form = "must be the id of an event of this stream, or absent"
  private let streams: NotificationStreams

  init(_ streams: NotificationStreams) {
    self.streams = streams
  }

  @Sendable func stream(_ request: Request, _ context: Context) async throws -> Response {
    let (me, session) = (try context.user, try context.session)
    var last = try request.query { $0.parsed("lastEventId", Self.form) { Timestamp(streamNumber: $0) } }
    // A client that reconnects automatically repeats its original URL, so the header takes precedence.
    if let header = request.headers[.lastEventID], !header.isEmpty {
      guard let number = Timestamp(streamNumber: header) else {
        throw AppError.invalid("Last-Event-ID", .badFormat, Self.form)
      }
      last = number
    }
    var response = Response(
      status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store", .xAccelBuffering: "no"])
    guard request.method != .head else { return response }
    let opened = try await streams.open(of: me, session, after: last)
    // A write does not always notice that the connection has closed.
    context.peer?.whenClosed { [weak stream = opened.stream] in stream?.end() }
    response.body = ResponseBody { writer in try await opened.write(to: writer) }
    return response
  }
}

extension Timestamp {
  /// In digits. A later time is tens of thousands of years away.
  private static let longestNumber = 18

  /// A notification's number in the stream: the microsecond at which it was filed.
  fileprivate init?(streamNumber text: String) {
    guard text.utf8.count <= Self.longestNumber,
      text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), let number = Int64(text)
    else { return nil }
    self.init(microseconds: number)
  }
}

extension HTTPField.Name {
  fileprivate static let lastEventID = HTTPField.Name("Last-Event-ID")!
  fileprivate static let xAccelBuffering = HTTPField.Name("X-Accel-Buffering")!
}
