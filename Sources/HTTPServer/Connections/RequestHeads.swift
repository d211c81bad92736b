import NIOCore
import NIOHTTP1

/// Refuses requests with an ambiguous head, and masks header values that are not ASCII before anything reads them.
///
/// Handlers compare paths and headers as Swift strings. For text that is not ASCII, each
/// comparison normalizes, which takes quadratic time for a run of combining marks.
final class RequestHeads: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart

  private var isRefused = false

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    // After a refusal, the connection takes no more requests.
    guard !isRefused else { return }
    guard case .head(var head) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
    if let objection = Self.objection(to: head) {
      isRefused = true
      // Reported like a parse error of the decoder, so that the responses to earlier requests are sent first.
      return context.fireErrorCaught(objection)
    }
    guard head.headers.contains(where: { !$0.value.isASCII }) else { return context.fireChannelRead(data) }
    head.headers = HTTPHeaders(head.headers.map { ($0.name, Self.masked($0.value)) })
    context.fireChannelRead(wrapInboundOut(.head(head)))
  }

  private static func objection(to head: HTTPRequestHead) -> HTTPParserError? {
    guard head.uri.isASCII else { return .invalidURL }
    // Otherwise two readers of the request, such as a proxy and this service, could see different hosts.
    let hosts = head.headers.count { $0.name.utf8.count == 4 && $0.name.lowercased() == "host" }
    guard hosts == 1 || hosts == 0 && head.version == .http1_0 else { return .invalidHeaderToken }
    // HTTP/1.0 has no chunks, so two readers could see different ends of the request.
    guard head.version != .http1_0 || !head.headers.contains(name: "transfer-encoding") else {
      return .invalidHeaderToken
    }
    return nil
  }

  /// Replaces each byte that is not ASCII with a control character, which no rule for a header's value accepts.
  static func masked(_ value: String) -> String {
    value.isASCII ? value : String(decoding: value.utf8.map { $0 < 0x80 ? $0 : 0x7f }, as: UTF8.self)
  }
}

extension String {
  /// Whether hashing and comparing the text takes linear time.
  var isASCII: Bool {
    // Without an early exit, many bytes are compared at once.
    utf8.withContiguousStorageIfAvailable { $0.reduce(0) { $0 | $1 } < 0x80 } ?? utf8.allSatisfy { $0 < 0x80 }
  }
}
