import Foundation
import Synchronization

/// One thread that waits for all of a database's sockets at once and tells their connections when there is something
/// to read or room to write. `poll` serves here: there are some twenty sockets, where it costs what epoll costs.
final class Reactor: Sendable {
  private struct State {
    var connections: [Connection] = []
    var isStopped = false
  }

  private let state = Lock(State())
  /// Connections with something in their outbox; nil once the thread has ended.
  private let senders = Lock<[Connection]?>([])
  /// A byte written to the pipe ends a wait in `poll`.
  private let wakeReader: Int32
  private let wakeWriter: Int32
  private let isAwake = Atomic(true)
  /// How often deadlines are looked at, in milliseconds: the precision of every deadline of this client.
  private static let tick: Int32 = 100

  /// - Parameter onTick: called on the reactor's thread some ten times a second; must not block.
  init(onTick: @escaping @Sendable (ContinuousClock.Instant) -> Void) throws {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else {
      throw PostgresError(.cannotConnect, "no pipe: \(String(cString: strerror(errno)))")
    }
    (wakeReader, wakeWriter) = (ends[0], ends[1])
    for end in ends {
      _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK)
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
    }
    let thread = Thread { [self] in run(onTick: onTick) }
    thread.name = "postgres"
    thread.start()
  }

  func add(_ connection: Connection) {
    let isStopped = state.withLock { state in
      state.connections.append(connection)
      return state.isStopped
    }
    wake()
    // Nobody would ever read from it.
    if isStopped { connection.close() }
  }

  func remove(_ connection: Connection) {
    state.withLock { $0.connections.removeAll { $0 === connection } }
  }

  /// What leads to the same server may be as dead as this one.
  func doubtOthers(than connection: Connection) {
    state.withLock { state in
      for other in state.connections where other !== connection && other.server == connection.server { other.doubt() }
    }
  }

  /// Makes the thread look at the sockets anew: for a new connection, or one that wants to write.
  func wake() {
    guard isAwake.exchange(true, ordering: .acquiringAndReleasing) == false else { return }
    var byte: UInt8 = 0
    _ = write(wakeWriter, &byte, 1)
  }

  /// Has a connection's outbox sent.
  func send(_ connection: Connection) {
    let isTaken = senders.withLock { senders in
      senders?.append(connection)
      return senders != nil
    }
    // Without the thread every connection is closed, and says so.
    if isTaken { wake() } else { connection.sendOutbox() }
  }

  func stop() {
    state.withLock { $0.isStopped = true }
    wake()
  }

  private func run(onTick: (ContinuousClock.Instant) -> Void) {
    var sockets: [pollfd] = []
    var nextTick = ContinuousClock.now
    while true {
      sendAll()
      isAwake.store(false, ordering: .sequentiallyConsistent)
      // Whoever came between these two lines saw a thread that is awake.
      let hasMore = senders.withLock { $0?.isEmpty == false }
      let (connections, isStopped) = state.withLock { ($0.connections, $0.isStopped) }
      if isStopped { break }
      sockets.removeAll(keepingCapacity: true)
      sockets.append(pollfd(fd: wakeReader, events: Int16(POLLIN), revents: 0))
      for connection in connections {
        let events = POLLIN | (connection.wantsToWrite.load(ordering: .acquiring) ? POLLOUT : 0)
        sockets.append(pollfd(fd: connection.socket, events: Int16(events), revents: 0))
      }
      let ready = poll(&sockets, nfds_t(sockets.count), hasMore ? 0 : Self.tick)
      isAwake.store(true, ordering: .relaxed)
      if ready > 0 {
        if sockets[0].revents != 0 { drainPipe() }
        for (index, connection) in connections.enumerated() where sockets[index + 1].revents != 0 {
          connection.socketIsReady()
        }
      }
      let now = ContinuousClock.now
      if now >= nextTick {
        nextTick = now + .milliseconds(Int(Self.tick))
        for connection in connections { connection.expire(at: now) }
        onTick(now)
      }
    }
    for connection in state.withLock({ $0.connections }) { connection.close() }
    let late = senders.withLock { senders in
      defer { senders = nil }
      return senders ?? []
    }
    for connection in late { connection.sendOutbox() }
  }

  /// Only now: until the last connection is gone, somebody may want to wake the thread, and a descriptor that was closed
  /// may be another's already.
  deinit {
    close(wakeReader)
    close(wakeWriter)
  }

  private func sendAll() {
    let ready = senders.withLock { senders in
      defer { senders?.removeAll(keepingCapacity: true) }
      return senders ?? []
    }
    for connection in ready { connection.sendOutbox() }
  }

  private func drainPipe() {
    var bytes: [UInt8] = Array(repeating: 0, count: 64)
    while read(wakeReader, &bytes, bytes.count) > 0 {}
  }
}
