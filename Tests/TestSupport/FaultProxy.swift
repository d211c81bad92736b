import Foundation
import Postgres

/// A TCP proxy on 127.0.0.1 in front of a server. It injects network faults. The faults of connection number n depend
/// only on the seed and n.
public final class FaultProxy: Sendable {
  public enum Mode: Sendable, Equatable {
    case forward
    /// Cuts new connections after at most this many bytes in one direction, by RST or by FIN. Some are also slow.
    case cut(within: Int)
    /// Accepts connections and bytes, but forwards nothing. A connection that lost bytes stays dead.
    case blackHole
    /// Drops the result of a COMMIT and everything after it, so that the client does not learn of the commit. Also
    /// applies to open connections.
    case holdCommits
    /// Closes every new connection immediately.
    case refuse
  }

  /// The faults of a connection.
  private struct Plan {
    var bytes = Int.max
    var countsAnswers = false
    /// Whether it ends by RST and not by FIN. RST may overtake data that was sent before.
    var isReset = false
    /// The delay in microseconds before each chunk from the server.
    var delay: UInt32 = 0
  }

  private struct State {
    var mode = Mode.forward
    var accepted = 0
    var cuts = 0
    var heldCommits = 0
    var links: [Int: (client: Int32, server: Int32)] = [:]
    var isClosed = false
  }

  public let port: UInt16
  private let listener: Int32
  private let target: Address
  private let seed: UInt64
  private let state = Lock(State())

  /// - Parameter url: the server's URL. Its host is a folder with a Unix socket, or an IPv4 address.
  public init(inFrontOf url: String, seed: UInt64 = 1) throws {
    target = try Address(of: url)
    self.seed = seed
    (listener, port) = try Address.listen()
    Thread.detachNewThread { [self] in
      while let client = accept() {
        // One blocking thread per connection is simple, and there are only a few dozen.
        Thread.detachNewThread { [self] in serve(client.socket, number: client.number) }
      }
      Foundation.close(listener)
    }
  }

  /// Applies to new connections. The black hole also drops everything that older connections send from now on.
  public var mode: Mode {
    get { state.withLock { $0.mode } }
    set { state.withLock { $0.mode = newValue } }
  }

  /// The number of connections accepted so far.
  public var accepted: Int { state.withLock { $0.accepted } }
  /// The number of connections cut so far.
  public var cuts: Int { state.withLock { $0.cuts } }
  /// The number of COMMITs whose results were dropped.
  public var heldCommits: Int { state.withLock { $0.heldCommits } }

  /// The URL of a database, with this proxy in place of the server.
  public func url(for url: String) -> String {
    Self.url(for: url, through: [self])
  }

  /// Like ``url(for:)``, with a list of hosts, each behind its own proxy.
  public static func url(for url: String, through proxies: [FaultProxy]) -> String {
    let name = url.prefix { $0 != "?" }.split(separator: "/").last ?? ""
    let hosts = proxies.map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
    return "postgresql://muster@\(hosts)/\(name)?sslmode=disable&gssencmode=disable"
  }

  /// Closes all connections.
  public func hangUp() {
    state.withLock { state in
      for link in state.links.values {
        shutdown(link.client, Int32(SHUT_RDWR))
        if link.server >= 0 { shutdown(link.server, Int32(SHUT_RDWR)) }
      }
    }
  }

  /// Closes the port. Open connections stay open.
  public func stopListening() {
    let isOver = state.withLock { state in
      defer { state.isClosed = true }
      return state.isClosed
    }
    guard !isOver else { return }
    // The first connection ends the wait in `accept`. Then the port closes within a moment.
    for _ in 0..<1000 {
      let last = Address.tcp(port).connect()
      guard last >= 0 else { return }
      Foundation.close(last)
      usleep(1000)
    }
  }

  public func close() {
    stopListening()
    hangUp()
  }

  private func accept() -> (socket: Int32, number: Int)? {
    while true {
      let socket = Foundation.accept(listener, nil, nil)
      if socket < 0, !state.withLock({ $0.isClosed }) {
        usleep(1000)
        continue
      }
      let number = state.withLock { state -> Int? in
        guard !state.isClosed else { return nil }
        state.accepted += 1
        state.links[state.accepted] = (socket, -1)
        return state.accepted
      }
      if let number { return (socket, number) }
      if socket >= 0 { Foundation.close(socket) }
      return nil
    }
  }

  private func serve(_ client: Int32, number: Int) {
    Address.prepare(client)
    let mode = mode
    var isReset = mode == .refuse
    if mode == .blackHole {
      swallow(client)
    } else if mode != .refuse {
      let server = target.connect()
      let isKnown = state.withLock { state in
        state.links[number]?.server = server
        return !state.isClosed
      }
      if server >= 0, isKnown { isReset = forward(client, server, plan(number, mode)) }
    }
    state.withLock { state in
      let server = state.links.removeValue(forKey: number)?.server ?? -1
      // A zero linger closes immediately with RST and drops unsent data.
      var none = linger(l_onoff: 1, l_linger: 0)
      if isReset { setsockopt(client, SOL_SOCKET, SO_LINGER, &none, socklen_t(MemoryLayout.size(ofValue: none))) }
      Foundation.close(client)
      if server >= 0 { Foundation.close(server) }
    }
  }

  private func plan(_ number: Int, _ mode: Mode) -> Plan {
    guard case .cut(let limit) = mode else { return Plan() }
    var random = SeededRandom(seed: seed &* 1_000_003 &+ UInt64(number))
    // Cut a few connections during startup, which takes about 600 bytes, but most of them later, when results can be
    // lost.
    let isEarly = Int.random(in: 0..<16, using: &random) == 0
    let range = isEarly ? 0...600 : 600...max(600, limit)
    return Plan(
      bytes: .random(in: range, using: &random), countsAnswers: .random(using: &random),
      isReset: .random(using: &random),
      delay: Int.random(in: 0..<8, using: &random) == 0 ? .random(in: 100...3000, using: &random) : 0)
  }

  /// - Returns: whether the connection must end by RST.
  private func forward(_ client: Int32, _ server: Int32, _ plan: Plan) -> Bool {
    var left = plan.bytes
    var buffer: [UInt8] = Array(repeating: 0, count: 16_384)
    while true {
      var sockets = [client, server].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      guard poll(&sockets, nfds_t(sockets.count), -1) > 0 else { continue }
      for isAnswer in [false, true] where sockets[isAnswer ? 1 : 0].revents != 0 {
        var count = recv(isAnswer ? server : client, &buffer, buffer.count, 0)
        guard count > 0 else { return false }
        let mode = mode
        let isHeld = mode == .holdCommits && isAnswer && buffer[..<count].firstRange(of: Self.committed) != nil
        if isHeld { state.withLock { $0.heldCommits += 1 } }
        if isHeld || mode == .blackHole {
          swallow(client)
          return false
        }
        if isAnswer, plan.delay > 0 { usleep(plan.delay) }
        if isAnswer == plan.countsAnswers {
          count = min(count, left)
          left -= count
        }
        guard Address.sendAll(buffer[..<count], to: isAnswer ? client : server) else { return false }
        if left == 0 {
          state.withLock { $0.cuts += 1 }
          return plan.isReset
        }
      }
    }
  }

  /// PostgreSQL's message that a COMMIT is complete.
  private static let committed: [UInt8] = Array("C\0\0\0\u{b}COMMIT\0".utf8)

  private func swallow(_ client: Int32) {
    var buffer: [UInt8] = Array(repeating: 0, count: 4096)
    while recv(client, &buffer, buffer.count, 0) > 0 {}
  }
}

/// The address of a stream socket.
private enum Address: Sendable {
  case unix(String)
  case tcp(UInt16)

  init(of url: String) throws {
    let query = URLComponents(string: "?" + url.drop { $0 != "?" }.dropFirst())?.queryItems ?? []
    func value(_ name: String) -> String? { query.first { $0.name == name }?.value }
    if let folder = value("host"), folder.hasPrefix("/") {
      self = .unix("\(folder)/.s.PGSQL.\(value("port") ?? "5432")")
    } else if let port = URL(string: url)?.port {
      self = .tcp(UInt16(port))
    } else {
      throw Unexpected("no server in \(url)")
    }
  }

  #if canImport(Darwin)
    private static let stream = SOCK_STREAM
  #else
    private static let stream = Int32(SOCK_STREAM.rawValue)
  #endif

  /// Prepares a socket: child processes do not inherit it, and it sends small chunks immediately.
  static func prepare(_ socket: Int32) {
    var yes: Int32 = 1
    _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
    setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout.size(ofValue: yes)))
    #if canImport(Darwin)
      setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &yes, socklen_t(MemoryLayout.size(ofValue: yes)))
    #endif
  }

  /// Listens on a free port.
  static func listen() throws -> (socket: Int32, port: UInt16) {
    let socket = Foundation.socket(AF_INET, stream, 0)
    prepare(socket)
    var address = inet(0)
    var size = socklen_t(MemoryLayout.size(ofValue: address))
    let isListening = withGeneric(&address) {
      Foundation.bind(socket, $0, size) == 0 && Foundation.listen(socket, 128) == 0
        && getsockname(socket, $0, &size) == 0
    }
    guard isListening else {
      throw Unexpected("cannot listen: \(String(cString: strerror(errno)))")
    }
    return (socket, UInt16(bigEndian: address.sin_port))
  }

  /// - Returns: -1 if no server listens there.
  func connect() -> Int32 {
    let socket: Int32
    let status: Int32
    switch self {
    case .tcp(let port):
      socket = Foundation.socket(AF_INET, Self.stream, 0)
      var address = Self.inet(port)
      let size = socklen_t(MemoryLayout.size(ofValue: address))
      status = Self.withGeneric(&address) { Foundation.connect(socket, $0, size) }
    case .unix(let path):
      socket = Foundation.socket(AF_UNIX, Self.stream, 0)
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
      let size = socklen_t(MemoryLayout.size(ofValue: address))
      status = Self.withGeneric(&address) { Foundation.connect(socket, $0, size) }
    }
    Self.prepare(socket)
    if status == 0 { return socket }
    Foundation.close(socket)
    return -1
  }

  private static func inet(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    return address
  }

  private static func withGeneric<Special, Result>(
    _ address: inout Special, _ body: (UnsafeMutablePointer<sockaddr>) -> Result
  ) -> Result {
    withUnsafeMutablePointer(to: &address) { $0.withMemoryRebound(to: sockaddr.self, capacity: 1, body) }
  }

  static func sendAll(_ bytes: ArraySlice<UInt8>, to socket: Int32) -> Bool {
    #if canImport(Darwin)
      let flags: Int32 = 0
    #else
      let flags = Int32(MSG_NOSIGNAL)
    #endif
    return bytes.withUnsafeBytes { buffer in
      var rest = buffer[...]
      while !rest.isEmpty {
        let sent = send(socket, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count, flags)
        guard sent > 0 else { return false }
        rest = rest.dropFirst(sent)
      }
      return true
    }
  }
}
