import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore

/// Sends requests to the router of this process, without a connection.
struct InProcessClient: Sendable {
  struct Response: Sendable {
    let status: Int
    let headers: HTTPFields
    let body: ByteBuffer
  }

  private let responder: Envelope
  private let logger: Logger

  init(_ dependencies: Dependencies) {
    responder = Envelope(dependencies)
    logger = dependencies.logger
  }

  /// - Parameter token: the access token; nil for a call that needs none.
  func send(_ call: ExportedCall, token: String?) async throws -> Response {
    // Otherwise each problem would have an id of its own.
    var headers: HTTPFields = [.xRequestID: "preview"]
    if let token { headers[.authorization] = "Bearer \(token)" }
    if let body = call.body {
      headers[.contentType] = "application/json"
      headers[.contentLength] = String(body.utf8.count)
    }
    let head = HTTPRequest(
      method: call.method, scheme: "https", authority: "localhost", path: call.path, headerFields: headers)
    let request = Request(head: head, body: RequestBody(buffer: ByteBuffer(string: call.body ?? "")))
    let response = try await responder.respond(to: request, context: Context(logger: logger))
    let content = PlainBody()
    try await response.body.write(content)
    return Response(status: Int(response.status.code), headers: response.headers, body: content.bytes)
  }
}
