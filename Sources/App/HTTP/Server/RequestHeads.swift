import NIOCore
import NIOHTTP1

/// Refuses a request whose head is ambiguous, and makes the rest of it plain ASCII before anything reads it.
///
/// The router compares a path with each route, and middleware compares headers with words, as Swift strings: for text
/// that is not ASCII each comparison normalizes, in quadratic time where combining marks follow one another.
final class RequestHeads: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart

  private var isRefused = false

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    // Nothing follows a refusal on the connection.
    guard !isRefused else { return }
    guard case .head(var head) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
    if let objection = Self.objection(to: head) {
      isRefused = true
      // As the decoder reports what it cannot parse: it gets its response after those to the requests before it.
      return context.fireErrorCaught(objection)
    }
    guard head.headers.contains(where: { !$0.value.isASCII }) else { return context.fireChannelRead(data) }
    head.headers = HTTPHeaders(head.headers.map { ($0.name, $0.value.isASCII ? $0.value : Self.masked($0.value)) })
    context.fireChannelRead(wrapInboundOut(.head(head)))
  }

  private static func objection(to head: HTTPRequestHead) -> HTTPParserError? {
    guard head.uri.isASCII else { return .invalidURL }
    // Two readers of the same request, such as a proxy and this service, could take it for different hosts' otherwise.
    let hosts = head.headers.count { $0.name.utf8.count == 4 && $0.name.lowercased() == "host" }
    guard hosts == 1 || hosts == 0 && head.version == .http1_0 else { return .invalidHeaderToken }
    return nil
  }

  /// With a control character, which no rule of a header's value takes, for each byte that is not ASCII.
  private static func masked(_ value: String) -> String {
    String(decoding: value.utf8.map { $0 < 0x80 ? $0 : 0x7f }, as: UTF8.self)
  }
}
