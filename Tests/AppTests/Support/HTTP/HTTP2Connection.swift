import Foundation
import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix
import NIOSSL

@testable import App

/// An HTTP/2 connection to the service that sends exactly the given frames.
final class HTTP2Connection: Sendable {
  /// A request, and its response once it is complete.
  struct Exchange: Sendable {
    let stream: any Channel
    /// Fails if the server ends the request before its response is complete.
    let response: EventLoopFuture<APIResponse>

    /// Sends a part of the body.
    func send(_ text: String, isLast: Bool = false) async throws {
      let data = HTTP2Frame.FramePayload.Data(data: .byteBuffer(ByteBuffer(string: text)), endStream: isLast)
      try await stream.writeAndFlush(HTTP2Frame.FramePayload.data(data)).get()
    }
  }

  let channel: any Channel
  private let streams: NIOHTTP2Handler.StreamMultiplexer

  init(to app: TestApp) async throws {
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.certificateVerification = .none
    tls.applicationProtocols = ["h2"]
    let context = try NIOSSLContext(configuration: tls)
    let port = URL(string: app.url)?.port ?? 0
    let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
    let made: (any Channel, NIOHTTP2Handler.StreamMultiplexer) = try await bootstrap.connect(
      host: "127.0.0.1", port: port
    ) { channel in
      channel.eventLoop.makeCompletedFuture {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(try NIOSSLClientHandler(context: context, serverHostname: nil))
        let streams = try pipeline.configureHTTP2Pipeline(
          mode: .client, connectionConfiguration: NIOHTTP2Handler.ConnectionConfiguration(),
          streamConfiguration: NIOHTTP2Handler.StreamConfiguration()
        ) { stream in stream.close() }
        return (channel, streams)
      }
    }
    (channel, streams) = made
  }

  /// Sends the head of a request.
  ///
  /// - Parameters:
  ///   - isLast: whether the request has no body.
  ///   - reads: whether to read the response. If not, the server soon has to stop sending it.
  func begin(
    _ method: String, _ path: String, _ headers: [(String, String)] = [], authority: String? = "localhost",
    isLast: Bool = true, reads: Bool = true
  ) async throws -> Exchange {
    let response = channel.eventLoop.makePromise(of: APIResponse.self)
    let stream: any Channel
    do {
      stream = try await streams.createStreamChannel { stream in
        stream.eventLoop.makeCompletedFuture {
          if !reads { try stream.syncOptions?.setOption(.autoRead, value: false) }
          try stream.pipeline.syncOperations.addHandler(ResponseHandler(response))
        }
      }.get()
    } catch {
      response.fail(error)
      throw error
    }
    var head: HPACKHeaders = [":method": method, ":scheme": "https", ":path": path]
    if let authority { head.add(name: ":authority", value: authority) }
    for (name, value) in headers { head.add(name: name, value: value) }
    let payload = HTTP2Frame.FramePayload.Headers(headers: head, endStream: isLast)
    try await stream.writeAndFlush(HTTP2Frame.FramePayload.headers(payload)).get()
    return Exchange(stream: stream, response: response.futureResult)
  }

  /// Sends a request without a body.
  func send(_ method: String, _ path: String, _ headers: [(String, String)] = []) async throws -> APIResponse {
    try await begin(method, path, headers).response.get()
  }
}

private final class ResponseHandler: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame.FramePayload

  private struct Incomplete: Error {}

  private let response: EventLoopPromise<APIResponse>
  private var head = HPACKHeaders()
  private var body = ByteBuffer()

  init(_ response: EventLoopPromise<APIResponse>) {
    self.response = response
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .headers(let headers):
      if headers.headers.contains(name: ":status") { head = headers.headers }
      if headers.endStream { finish() }
    case .data(let part):
      if case .byteBuffer(var bytes) = part.data { body.writeBuffer(&bytes) }
      if part.endStream { finish() }
    default: break
    }
  }

  private func finish() {
    let headers = head.map { (name: $0.name, value: $0.value) }
    let status = head.first(name: ":status").flatMap { Int($0) } ?? 0
    response.succeed(APIResponse(status: status, headers: headers, body: String(buffer: body)))
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    response.fail(error)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    // Has no effect on a complete response.
    response.fail(Incomplete())
  }
}
