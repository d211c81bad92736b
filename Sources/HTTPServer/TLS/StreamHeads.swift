import HTTPTypes
import NIOCore
import NIOHPACK
import NIOHTTP1
import NIOHTTP2

/// Refuses HTTP/2 requests with an ambiguous head, as ``RequestHeads`` does for HTTP/1, and gives the others the form
/// of an HTTP/1 request.
final class StreamHeads: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias InboundOut = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  /// As many as an HTTP/1 request may have, and the method, scheme, path and authority.
  private static let maximumCount = 104

  private let refuse: Refusal.Maker
  private var hasHead = false
  private var isRefused = false

  init(refuse: @escaping Refusal.Maker) {
    self.refuse = refuse
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isRefused else { return }
    guard !hasHead, case .headers(var payload) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
    hasHead = true
    if let reason = Self.reason(against: payload.headers) {
      isRefused = true
      return respond(refuse(reason), endsStream: !payload.endStream, context)
    }
    if payload.headers.contains(where: { !$0.value.isASCII }) {
      payload.headers = HPACKHeaders(payload.headers.map { ($0.name, RequestHeads.masked($0.value)) })
    }
    // Without a length, only this tells the routes that there is a body.
    if !payload.endStream, !payload.headers.contains(name: "content-length") {
      payload.headers.add(name: "transfer-encoding", value: "chunked")
    }
    context.fireChannelRead(wrapInboundOut(.headers(payload)))
  }

  private static func reason(against headers: HPACKHeaders) -> Refusal.Reason? {
    guard headers.count <= maximumCount else { return .headersTooLarge }
    guard let path = headers.first(name: ":path"), path.isASCII,
      path.utf8.first == UInt8(ascii: "/") || path == "*" && headers.first(name: ":method") == "OPTIONS",
      let authority = headers.first(name: ":authority"),
      !authority.isEmpty
    else { return .malformed }
    // Otherwise two readers of the request, such as a proxy and this service, could see different hosts.
    let hosts = headers["host"]
    return hosts.count <= 1 && hosts.allSatisfy { $0.utf8.elementsEqual(authority.utf8) } ? nil : .malformed
  }

  /// - Parameter endsStream: whether the rest of the request is still to come, and unwanted.
  private func respond(_ refusal: Refusal, endsStream: Bool, _ context: ChannelHandlerContext) {
    var headers: HPACKHeaders = [":status": "\(refusal.response.status.code)"]
    for field in refusal.response.headerFields where field.name != .connection {
      headers.add(name: field.name.canonicalName, value: field.value)
    }
    context.write(wrapOutboundOut(.headers(.init(headers: headers))), promise: nil)
    context.write(wrapOutboundOut(.data(.init(data: .byteBuffer(refusal.body), endStream: true))), promise: nil)
    if endsStream { context.write(wrapOutboundOut(.rstStream(.noError)), promise: nil) }
    context.flush()
  }
}
