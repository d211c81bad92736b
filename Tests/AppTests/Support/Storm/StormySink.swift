import Crypto
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import TestSupport

@testable import App

/// A receiver for many webhooks, each with its own path. It works or fails as its weather says, and keeps all arrivals
/// in order.
final class StormySink: Sendable {
  struct Arrival: Sendable {
    /// The path that it was posted to.
    let device: String
    let headers: HTTPHeaders
    let body: String
    let date = Date()
    private let time = ContinuousClock.now
    /// The time of the response that accepted it. Nil if it was not accepted.
    fileprivate var accepted: ContinuousClock.Instant?

    var id: String { headers.first(name: "webhook-id") ?? "" }
    var json: JSON { (try? JSON(parsing: body.utf8)) ?? .null }

    /// Whether the sender must have received the acceptance, if it lived. It waits for longer than these 8 seconds.
    var isAccepted: Bool { accepted.map { $0 - time < .seconds(8) } ?? false }

    fileprivate init(device: String, headers: HTTPHeaders, body: String) {
      (self.device, self.headers, self.body) = (device, headers, body)
    }

    /// Whether the signature and its time are valid by Standard Webhooks 1.0. This code is independent of the
    /// service's.
    func isSigned(with secret: String) -> Bool {
      guard let timestamp = headers.first(name: "webhook-timestamp"), let seconds = Double(timestamp),
        abs(seconds - date.timeIntervalSince1970) < 300, secret.hasPrefix("whsec_"),
        let key = Data(base64Encoded: String(secret.dropFirst(6)))
      else { return false }
      let signed = Data("\(id).\(timestamp).\(body)".utf8)
      let mac = Data(HMAC<SHA256>.authenticationCode(for: signed, using: SymmetricKey(data: key)))
      return (headers.first(name: "webhook-signature") ?? "").split(separator: " ")
        .contains("v1,\(mac.base64EncodedString())")
    }
  }

  enum Weather: Sendable {
    /// Accepts everything immediately.
    case fair
    /// Sometimes refuses, closes the connection, never responds, or responds late.
    case foul
    /// Responds to nothing until ``release(_:)``.
    case still
  }

  private struct State: Sendable {
    var port = 0
    var weather = Weather.fair
    var stalledUntil = ContinuousClock.now
    var random: SeededRandom
    var arrivals: [Arrival] = []
    var held: [Int: Reply] = [:]
    var refusals = 0
  }

  private enum Fate: Sendable {
    case refused(Int, retryAfter: Int?)
    case cut, silence, kept
    case accepted(after: Duration)
  }

  private let state: Mutex<State>

  private init(seed: UInt64) {
    state = Mutex(State(random: SeededRandom(seed: seed)))
  }

  /// Runs the sink while `body` runs.
  static func run(seed: UInt64 = 1, _ body: (StormySink) async throws -> Void) async throws {
    let sink = StormySink(seed: seed)
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(ChannelOptions.backlog, value: 256)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          try pipeline.configureHTTPServerPipeline()
          try pipeline.addHandler(Posting(sink))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    sink.state.withLock { $0.port = channel.localAddress?.port ?? 0 }
    do {
      try await body(sink)
    } catch {
      try await channel.close()
      throw error
    }
    try await channel.close()
  }

  // MARK: For tests

  func url(of device: String) -> String { "http://127.0.0.1:\(state.withLock { $0.port })\(device)" }

  var arrivals: [Arrival] { state.withLock { $0.arrivals } }
  var count: Int { state.withLock { $0.arrivals.count } }
  /// The number of arrivals that were refused, cut off, or left without a response.
  var refusals: Int { state.withLock { $0.refusals } }

  var weather: Weather {
    get { state.withLock { $0.weather } }
    set { state.withLock { $0.weather = newValue } }
  }

  /// Delays all responses for a while.
  func stall(for time: Duration) {
    state.withLock { $0.stalledUntil = .now + time }
  }

  /// Accepts those of the first `count` arrivals that still wait for a response.
  func release(_ count: Int) {
    let waiting = state.withLock { state in
      let numbers = state.held.keys.filter { $0 < count }
      for number in numbers { state.arrivals[number].accepted = .now }
      return numbers.compactMap { state.held.removeValue(forKey: $0) }
    }
    for reply in waiting { reply.send(204) }
  }

  // MARK: Serving

  fileprivate func take(_ arrival: Arrival, _ reply: Reply) {
    let (number, fate) = state.withLock { state -> (Int, Fate) in
      let number = state.arrivals.count
      state.arrivals.append(arrival)
      let fate = Self.fate(&state)
      switch fate {
      case .kept: state.held[number] = reply
      case .refused, .cut, .silence: state.refusals += 1
      case .accepted: break
      }
      return (number, fate)
    }
    switch fate {
    case .kept, .silence: break
    case .cut: reply.cut()
    case .refused(let status, let seconds): reply.send(status, retryAfter: seconds)
    case .accepted(let time) where time <= .zero: accept(number, reply)
    case .accepted(let time):
      Task {
        try? await Task.sleep(for: time)
        accept(number, reply)
      }
    }
  }

  private func accept(_ number: Int, _ reply: Reply) {
    state.withLock { $0.arrivals[number].accepted = .now }
    reply.send(204)
  }

  private static func fate(_ state: inout State) -> Fate {
    let stall = state.stalledUntil - ContinuousClock.now
    switch state.weather {
    case .fair: return .accepted(after: .zero)
    case .still: return .kept
    case .foul:
      switch Int.random(in: 0..<200, using: &state.random) {
      case 0..<6: return .refused(500, retryAfter: nil)
      case 6..<10: return .refused(429, retryAfter: 1)
      case 10..<14: return .cut
      case 14: return .silence
      case 15..<25:
        let milliseconds = Int.random(in: 5...300, using: &state.random)
        return .accepted(after: max(stall, .milliseconds(milliseconds)))
      default: return .accepted(after: max(stall, .zero))
      }
    }
  }
}

/// The response to a delivery.
private struct Reply: Sendable {
  let context: NIOLoopBound<ChannelHandlerContext>

  func send(_ status: Int, retryAfter seconds: Int? = nil) {
    var headers = HTTPHeaders()
    if status != 204 { headers.add(name: "Content-Length", value: "0") }
    if let seconds { headers.add(name: "Retry-After", value: String(seconds)) }
    let head = HTTPResponseHead(version: .http1_1, status: HTTPResponseStatus(statusCode: status), headers: headers)
    context.eventLoop.execute {
      context.value.write(Posting.wrapOutboundOut(.head(head)), promise: nil)
      context.value.writeAndFlush(Posting.wrapOutboundOut(.end(nil)), promise: nil)
    }
  }

  func cut() {
    context.eventLoop.execute { context.value.close(promise: nil) }
  }
}

/// Handles the requests of one connection, one after the other.
private final class Posting: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private let sink: StormySink
  private var head: HTTPRequestHead?
  private var body = ByteBuffer()

  init(_ sink: StormySink) {
    self.sink = sink
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      self.head = head
      body.clear()
    case .body(let part): body.writeImmutableBuffer(part)
    case .end:
      guard let head else { return }
      let arrival = StormySink.Arrival(device: head.uri, headers: head.headers, body: String(buffer: body))
      sink.take(arrival, Reply(context: NIOLoopBound(context, eventLoop: context.eventLoop)))
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }
}
