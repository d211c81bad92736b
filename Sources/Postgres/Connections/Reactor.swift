import Dispatch
import Foundation
import Synchronization

/// One thread that waits for all sockets of a database and calls their connections when a socket is readable or
/// writable. `poll` is enough: with about twenty sockets, it costs the same as epoll.
///
/// It also runs tasks: see ``Database/executor``. A task then continues where its result arrived, so no other thread
/// has to wake up.
final class Reactor: TaskExecutor {
  private struct State {
    var connections: [Connection] = []
    var isStopped = false
  }

  private let state = Lock(State())
  /// Connections with requests in their outbox; nil once the thread has ended.
  private let senders = Lock<[Connection]?>([])
  /// Jobs of tasks; nil once the thread has ended.
  private let jobs = Lock<[UnownedJob]?>([])
  /// While this many jobs wait for the thread, further ones run in the global pool.
  private static let maximumJobs = 8
  /// In nanoseconds. Once jobs have kept the thread from its sockets for this long, others run in the global pool.
  private static let maximumJobTime: UInt64 = 500_000
  /// When the thread began to run jobs, in nanoseconds of the system's uptime; 0 if it runs none.
  private let jobsBegan = Atomic<UInt64>(0)
  /// A byte written to the pipe ends a wait in `poll`.
  private let wakeReader: Int32
  private let wakeWriter: Int32
  private let isAwake = Atomic(true)
  /// How often deadlines are checked, in milliseconds. This is the precision of every deadline of this client.
  private static let tick: Int32 = 100

  /// - Parameter onTick: called on the reactor's thread about ten times a second; must not block.
  init(onTick: @escaping @Sendable (ContinuousClock.Instant) -> Void) throws {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else {
      throw PostgresError(.cannotConnect, "cannot create a pipe: \(String(cString: strerror(errno)))")
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
    // A stopped reactor would never read from it.
    if isStopped { connection.close() }
  }

  func remove(_ connection: Connection) {
    state.withLock { $0.connections.removeAll { $0 === connection } }
  }

  /// Marks all other connections to the same server as suspect.
  func suspectOthers(than connection: Connection) {
    state.withLock { state in
      for other in state.connections where other !== connection && other.server == connection.server {
        other.markSuspect()
      }
    }
  }

  /// Makes the thread rebuild its list of sockets, for a new connection or one that wants to write.
  func wake() {
    guard isAwake.exchange(true, ordering: .acquiringAndReleasing) == false else { return }
    var byte: UInt8 = 0
    _ = write(wakeWriter, &byte, 1)
  }

  /// Schedules sending a connection's outbox.
  func send(_ connection: Connection) {
    let isTaken = senders.withLock { senders in
      senders?.append(connection)
      return senders != nil
    }
    // After the thread has ended, every connection is closed, so this call fails the requests.
    if isTaken { wake() } else { connection.sendOutbox() }
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let isBusy = haveJobsRunLong
    let isTaken = jobs.withLock { jobs in
      guard !isBusy, let count = jobs?.count, count < Self.maximumJobs else { return false }
      jobs?.append(job)
      // Inside the lock, which the thread takes before it runs the job. The job may drop the last reference to this.
      wake()
      return true
    }
    if !isTaken { globalConcurrentExecutor.enqueue(job) }
  }

  private var haveJobsRunLong: Bool {
    let began = jobsBegan.load(ordering: .relaxed)
    return began != 0 && DispatchTime.now().uptimeNanoseconds &- began > Self.maximumJobTime
  }

  func stop() {
    state.withLock { $0.isStopped = true }
    wake()
  }

  private func run(onTick: (ContinuousClock.Instant) -> Void) {
    var sockets: [pollfd] = []
    var nextTick = ContinuousClock.now
    while true {
      runJobs()
      sendAll()
      isAwake.store(false, ordering: .sequentiallyConsistent)
      // A caller that came after `sendAll` may have seen an awake thread, so its connection is looked up here. So is a
      // job that came after `runJobs`.
      let hasMore = senders.withLock { $0?.isEmpty == false } || jobs.withLock { $0?.isEmpty == false }
      let (connections, isStopped) = state.withLock { ($0.connections, $0.isStopped) }
      if isStopped { break }
      sockets.removeAll(keepingCapacity: true)
      sockets.append(pollfd(fd: wakeReader, events: Int16(POLLIN), revents: 0))
      for connection in connections {
        let events = POLLIN | (connection.wantsToWrite ? POLLOUT : 0)
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
        for connection in connections {
          connection.lookAgain()
          connection.expire(at: now)
        }
        onTick(now)
      }
    }
    for connection in state.withLock({ $0.connections }) { connection.close() }
    let late = senders.withLock { senders in
      defer { senders = nil }
      return senders ?? []
    }
    for connection in late { connection.sendOutbox() }
    let rest = jobs.withLock { jobs in
      defer { jobs = nil }
      return jobs ?? []
    }
    for job in rest { globalConcurrentExecutor.enqueue(job) }
  }

  /// Closes the pipe only now: until the last connection is gone, a caller may wake the thread, and a closed descriptor
  /// may already belong to another file.
  deinit {
    close(wakeReader)
    close(wakeWriter)
  }

  /// Runs the jobs that wait now. Jobs that these add wait until the thread has looked at its sockets. If the first
  /// ones take long, the others go to the global pool.
  private func runJobs() {
    let waiting = jobs.withLock { jobs in
      defer { jobs?.removeAll(keepingCapacity: true) }
      return jobs ?? []
    }
    guard !waiting.isEmpty else { return }
    jobsBegan.store(DispatchTime.now().uptimeNanoseconds, ordering: .relaxed)
    for (index, job) in waiting.enumerated() {
      if index > 0, haveJobsRunLong {
        globalConcurrentExecutor.enqueue(job)
      } else {
        job.runSynchronously(on: asUnownedTaskExecutor())
      }
    }
    jobsBegan.store(0, ordering: .relaxed)
  }

  private func sendAll() {
    let ready = senders.withLock { senders in
      defer { senders?.removeAll(keepingCapacity: true) }
      return senders ?? []
    }
    for connection in ready { connection.sendOutbox() }
  }

  /// One read is enough: `wake` writes one byte for each wait, and a byte that remains only ends another wait.
  private func drainPipe() {
    var bytes: UInt64 = 0
    _ = read(wakeReader, &bytes, MemoryLayout.size(ofValue: bytes))
  }
}
