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
    /// The client gets the response in pieces, with pauses between them.
    case drip(pieces: Int, pause: Duration)
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
    /// Of the server's response, whether the client gets it or not.
    var status: Int?
    /// The `Idempotency-Key`.
    var key: String?
    var fault = Fault.none

    var isStream: Bool { path.contains("/notifications/stream") }
  }

  typealias Plan = @Sendable (_ exchange: Exchange, _ random: inout SeededRandom) -> Fault

  struct State {
    var target: Int
    var random: SeededRandom
    var plan: Plan = { _, _ in .none }
    var isOffline = false
    var isSilent = false
    var count = 0
    var exchanges: [Exchange] = []
    var channels: [ObjectIdentifier: any Channel] = [:]
    var openStreams = 0
    /// The accepted connections that are not served yet; nil once the proxy is closed. A listener that is closed drops
    /// them, and swift-nio ends the process if a connection is dropped before it has ended.
    var waiting: [ObjectIdentifier: Connection]? = [:]
  }

  typealias Connection = NIOAsyncChannel<ByteBuffer, ByteBuffer>

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
        channel.eventLoop.makeCompletedFuture {
          try state.withLock { state in
            guard state.waiting != nil else {
              channel.close(promise: nil)
              throw ChannelError.alreadyClosed
            }
            let connection = try Connection(wrappingChannelSynchronously: channel)
            state.waiting?[ObjectIdentifier(channel)] = connection
            return connection
          }
        }
      }
    self.state = state
    self.listener = listener
    port = listener.channel.localAddress?.port ?? 0
    serving = Task {
      try? await listener.executeThenClose { connections in
        await withDiscardingTaskGroup { group in
          do {
            for try await connection in connections {
              state.withLock { $0.waiting?[ObjectIdentifier(connection.channel)] = nil }
              group.addTask { await Self.serve(connection, state) }
            }
          } catch {
            // The listener was closed.
          }
          let dropped = state.withLock { state in
            defer { state.waiting = nil }
            return state.waiting ?? [:]
          }
          for connection in dropped.values { group.addTask { try? await connection.executeThenClose { _, _ in } } }
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

  /// The network is gone: all connections are closed, and new ones are closed immediately.
  var isOffline: Bool {
    get { state.withLock { $0.isOffline } }
    set {
      state.withLock { $0.isOffline = newValue }
      if newValue { hangUp() }
    }
  }

  /// The network swallows all packets: nothing arrives, and nothing fails. A connection on which it has swallowed
  /// something stays silent, even when the network is back.
  var isSilent: Bool {
    get { state.withLock { $0.isSilent } }
    set { state.withLock { $0.isSilent = newValue } }
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
}
