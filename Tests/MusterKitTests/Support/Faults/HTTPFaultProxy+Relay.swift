import Foundation
import NIOCore
import NIOPosix
import Postgres
import TestSupport

extension HTTPFaultProxy {
  /// Forwards the exchanges of one connection until a fault ends it.
  struct Relay {
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
        guard !state.withLock({ $0.isSilent }) else { return try await swallow() }
        switch fault {
        case .loseRequest: return try await hangUp()
        case .cutRequest(let share):
          try await toServer.write(ByteBuffer(bytes: Self.part(share, of: request.bytes)))
          return try await hangUp()
        case .none, .loseResponse, .cutResponse, .delay, .drip:
          try await toServer.write(ByteBuffer(bytes: request.bytes))
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
        case .drip(let pieces, let pause) where !response.head.isStream:
          try await drip(response.bytes, pieces, pause)
          continue
        default: break
        }
        try await toClient.write(ByteBuffer(bytes: response.bytes))
        if response.head.isStream, try await !stream(number, fault) { return }
      }
    }

    private func drip(_ bytes: [UInt8], _ pieces: Int, _ pause: Duration) async throws {
      let size = bytes.count / pieces + 1
      for start in stride(from: 0, to: bytes.count, by: size) {
        try await toClient.write(ByteBuffer(bytes: bytes[start..<min(start + size, bytes.count)]))
        try await Task.sleep(for: pause)
      }
    }

    /// Takes what comes from the client until it hangs up.
    private mutating func swallow() async throws {
      while try await requests.next() != nil {}
    }

    /// Forwards a stream until it ends.
    ///
    /// - Returns: whether the connection continues.
    private mutating func stream(_ number: Int, _ fault: Fault) async throws -> Bool {
      state.withLock { $0.openStreams += 1 }
      defer { state.withLock { $0.openStreams -= 1 } }
      var left = Int.max
      if case .cutResponse(let share) = fault { left = Int(share * 4096) }
      while let bytes = try await responses.next() {
        guard !state.withLock({ $0.isSilent }) else {
          try await swallow()
          return false
        }
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
        exchange.key = head.headers["idempotency-key"]
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
