import Foundation
import NIOCore
import NIOPosix
import Postgres
import TestSupport

/// A TCP proxy on 127.0.0.1 between a client and a `muster serve`. It knows where HTTP messages end, so that it can
/// inject a fault at a chosen point of each exchange.
///
///     let proxy = try await HTTPFaultProxy(inFrontOf: server.port)
///     proxy.plan { exchange, _ in exchange.method == "POST" ? .loseResponse : .none }
final class HTTPFaultProxy: Sendable {
  enum Fault: Sendable, Equatable {
    case none
    /// The server does not get the request.
    case loseRequest
    /// The server gets this share of the request's bytes.
    case cutRequest(Double)
    /// The server responds, and the client gets nothing of it.
    case loseResponse
    /// The client gets this share of the response's bytes. Of a stream, it gets this share of 4 KiB.
    case cutResponse(Double)
    /// The client gets the response after a pause.
    case delay(milliseconds: Int)
  }

  /// A request and its response, as the proxy saw them.
  struct Exchange: Sendable {
    /// Counted from 1 for each proxy.
    let number: Int
    let method: String
    /// With the query.
    let path: String
    let requestBytes: Int
    var responseBytes = 0
    var status: Int?
    var fault = Fault.none

    var isStream: Bool { path.contains("/notifications/stream") }
  }

  typealias Plan = @Sendable (_ exchange: Exchange, _ random: inout SeededRandom) -> Fault

  private struct State {
    var target: Int
    var random: SeededRandom
    var plan: Plan = { _, _ in .none }
    var isOffline = false
    var count = 0
    var exchanges: [Exchange] = []
    var channels: [ObjectIdentifier: any Channel] = [:]
    var openStreams = 0
  }

  private typealias Connection = NIOAsyncChannel<ByteBuffer, ByteBuffer>

  let port: Int
  private let state: Lock<State>
  private let listener: NIOAsyncChannel<Connection, Never>
  private let serving: Task<Void, Never>

  /// - Parameter seed: of the generator that the plan gets.
  init(inFrontOf target: Int, seed: UInt64 = 1) async throws {
    let state = Lock(State(target: target, random: SeededRandom(seed: seed)))
    let listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      .bind(host: "127.0.0.1", port: 0) { channel in
        channel.eventLoop.makeCompletedFuture { try Connection(wrappingChannelSynchronously: channel) }
      }
    self.state = state
    self.listener = listener
    port = listener.channel.localAddress?.port ?? 0
    serving = Task {
      try? await listener.executeThenClose { connections in
        await withDiscardingTaskGroup { group in
          do {
            for try await connection in connections {
              group.addTask { await Self.serve(connection, state) }
            }
          } catch {
            // The listener was closed.
          }
          Self.hangUp(state)
        }
      }
    }
  }

  var url: URL { URL(string: "http://127.0.0.1:\(port)") ?? URL(filePath: "/") }

  /// The port of the server. Applies to new connections.
  var target: Int {
    get { state.withLock { $0.target } }
    set { state.withLock { $0.target = newValue } }
  }

  /// Chooses the fault of each later exchange.
  func plan(_ plan: @escaping Plan) {
    state.withLock { $0.plan = plan }
  }

  /// The network is gone: all connections are closed, and new ones are closed at once.
  var isOffline: Bool {
    get { state.withLock { $0.isOffline } }
    set {
      state.withLock { $0.isOffline = newValue }
      if newValue { hangUp() }
    }
  }

  /// All exchanges so far, in the order in which their requests were complete.
  var exchanges: [Exchange] { state.withLock { $0.exchanges } }

  /// The number of streams that both sides hold open.
  var openStreams: Int { state.withLock { $0.openStreams } }

  /// Forgets the exchanges so far.
  @discardableResult
  func takeExchanges() -> [Exchange] {
    state.withLock { state in
      defer { state.exchanges = [] }
      return state.exchanges
    }
  }

  /// Closes all connections.
  func hangUp() { Self.hangUp(state) }

  private static func hangUp(_ state: Lock<State>) {
    for channel in state.withLock({ Array($0.channels.values) }) { channel.close(promise: nil) }
  }

  /// Closes the port and all connections.
  func close() async {
    listener.channel.close(promise: nil)
    hangUp()
    await serving.value
  }

  // MARK: One connection

  private static func serve(_ client: Connection, _ state: Lock<State>) async {
    let id = ObjectIdentifier(client.channel)
    let target = state.withLock { state -> Int? in
      guard !state.isOffline else { return nil }
      state.channels[id] = client.channel
      return state.target
    }
    try? await client.executeThenClose { inbound, outbound in
      guard let target else { return }
      let server = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
        .channelOption(.tcpOption(.tcp_nodelay), value: 1)
        .connect(host: "127.0.0.1", port: target) { channel in
          channel.eventLoop.makeCompletedFuture { try Connection(wrappingChannelSynchronously: channel) }
        }
      // A client that hangs up ends its stream.
      client.channel.closeFuture.whenComplete { _ in server.channel.close(promise: nil) }
      try await server.executeThenClose { responses, requests in
        var relay = Relay(
          client: client.channel, requests: inbound.makeAsyncIterator(), responses: responses.makeAsyncIterator(),
          toServer: requests, toClient: outbound, state: state)
        try await relay.run()
      }
    }
    state.withLock { $0.channels[id] = nil }
  }

  /// Forwards the exchanges of one connection until a fault ends it.
  private struct Relay {
    typealias Bytes = NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
    typealias Writer = NIOAsyncChannelOutboundWriter<ByteBuffer>

    let client: any Channel
    var requests: Bytes
    var responses: Bytes
    let toServer: Writer
    let toClient: Writer
    let state: Lock<State>
    private var requested = HTTPMessages()
    private var responded = HTTPMessages()

    init(
      client: any Channel, requests: Bytes, responses: Bytes, toServer: Writer, toClient: Writer, state: Lock<State>
    ) {
      (self.client, self.requests, self.responses) = (client, requests, responses)
      (self.toServer, self.toClient, self.state) = (toServer, toClient, state)
    }

    mutating func run() async throws {
      while let request = try await nextRequest() {
        let (number, fault) = begin(request.head, request.bytes.count)
        switch fault {
        case .loseRequest: return try await hangUp()
        case .cutRequest(let share):
          try await toServer.write(ByteBuffer(bytes: Self.part(share, of: request.bytes)))
          return try await hangUp()
        case .none, .loseResponse, .cutResponse, .delay: try await toServer.write(ByteBuffer(bytes: request.bytes))
        }
        guard let response = try await nextResponse() else { return }
        note(number) { exchange in
          exchange.status = response.head.status
          exchange.responseBytes = response.bytes.count
        }
        switch fault {
        case .loseResponse: return try await hangUp()
        case .cutResponse(let share) where !response.head.isStream:
          let part = Self.part(share, of: response.bytes)
          try await toClient.write(ByteBuffer(bytes: part))
          // On Linux, Foundation stops the process if a connection ends properly within a head.
          return try await hangUp(byReset: part.count < response.head.length)
        case .delay(let milliseconds): try await Task.sleep(for: .milliseconds(milliseconds))
        default: break
        }
        try await toClient.write(ByteBuffer(bytes: response.bytes))
        if response.head.isStream, try await !stream(number, fault) { return }
      }
    }

    /// Forwards a stream until it ends.
    ///
    /// - Returns: whether the connection goes on.
    private mutating func stream(_ number: Int, _ fault: Fault) async throws -> Bool {
      state.withLock { $0.openStreams += 1 }
      defer { state.withLock { $0.openStreams -= 1 } }
      var left = Int.max
      if case .cutResponse(let share) = fault { left = Int(share * 4096) }
      while let bytes = try await responses.next() {
        note(number) { $0.responseBytes += bytes.readableBytes }
        guard bytes.readableBytes < left else {
          try await toClient.write(bytes.getSlice(at: bytes.readerIndex, length: left) ?? bytes)
          try await hangUp()
          return false
        }
        left -= bytes.readableBytes
        try await toClient.write(bytes)
        if bytes.readableBytesView.suffix(Self.lastChunk.count).elementsEqual(Self.lastChunk) { return true }
      }
      return false
    }

    private mutating func nextRequest() async throws -> (head: HTTPMessages.Head, bytes: [UInt8])? {
      while true {
        if let message = requested.next() { return message }
        guard let more = try await requests.next() else { return nil }
        requested.add(more)
      }
    }

    /// The complete response, or the beginning of a stream.
    private mutating func nextResponse() async throws -> (head: HTTPMessages.Head, bytes: [UInt8])? {
      while true {
        if let head = responded.head(), head.isStream { return (head, responded.takeAll()) }
        if let message = responded.next() { return message }
        guard let more = try await responses.next() else { return nil }
        responded.add(more)
      }
    }

    private func begin(_ head: HTTPMessages.Head, _ bytes: Int) -> (number: Int, fault: Fault) {
      state.withLock { state in
        let path = head.words.count > 1 ? head.words[1] : ""
        state.count += 1
        var exchange = Exchange(
          number: state.count, method: head.words.first ?? "", path: path, requestBytes: bytes)
        exchange.fault = state.plan(exchange, &state.random)
        state.exchanges.append(exchange)
        return (exchange.number, exchange.fault)
      }
    }

    private func note(_ number: Int, _ change: (inout Exchange) -> Void) {
      state.withLock { state in
        guard let index = state.exchanges.lastIndex(where: { $0.number == number }) else { return }
        change(&state.exchanges[index])
      }
    }

    /// Ends the connection, at least in half of the cases by RST.
    private func hangUp(byReset mustReset: Bool = false) async throws {
      let isReset = state.withLock { Bool.random(using: &$0.random) }
      guard isReset || mustReset, let options = client as? any SocketOptionProvider else { return }
      try await options.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
    }

    /// The end of a stream.
    private static let lastChunk = Array("0\r\n\r\n".utf8)

    private static func part(_ share: Double, of bytes: [UInt8]) -> ArraySlice<UInt8> {
      bytes.prefix(Int(share * Double(bytes.count)))
    }
  }
}
