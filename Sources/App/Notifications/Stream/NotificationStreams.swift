import HTTPServer
import Logging
import Postgres
import ServiceLifecycle
import Synchronization

/// The notification streams that this process has open. One reader serves them all: it checks which inboxes have
/// changed, at regular intervals and when it is notified that some may have, and reads the new items.
///
/// The number of a notification in the stream is its place in the inbox. It is assigned under the lock of the inbox's
/// stamp, so a client that sees a notification can also see all those with lower numbers. Reading on after the last
/// number therefore never skips one that committed late.
final class NotificationStreams: Service {
  private struct Inbox: Sendable {
    /// The inbox's stamp when it was last read to its end.
    var stamp: Timestamp
    /// The streams have been offered everything up to here.
    var place: Timestamp
    /// Oldest first.
    var streams: [NotificationStream] = []
  }

  private struct State: Sendable {
    var inboxes: [User.ID: Inbox] = [:]
    var count = 0
    var isListening = false
    var hasStopped = false
  }

  /// The last message of a stream that is closed to make room for another of the same user. It makes the client wait
  /// before it reconnects, because that closes yet another stream.
  private static let makingRoom = ": too many streams\nretry: 60000\n\n"

  private let database: Database
  private let inboxes: InboxReader
  private let limits: ServiceLimits
  private let logger: Logger
  private let canListen: Bool
  private let state = Mutex(State())
  /// Finishes when the first stream opens.
  private let beginning: (ends: AsyncStream<Void>, end: AsyncStream<Void>.Continuation)
  private let wakeUps: (all: AsyncStream<Void>, add: AsyncStream<Void>.Continuation)

  init(_ dependencies: Dependencies, limits: ServiceLimits = ServiceLimits()) {
    database = dependencies.database
    inboxes = InboxReader(database: dependencies.database, publicURL: dependencies.publicURL)
    canListen = !dependencies.isBehindPooler && dependencies.engine == .postgres
    self.limits = limits
    logger = dependencies.logger
    let (beginning, end) = AsyncStream.makeStream(of: Void.self)
    self.beginning = (beginning, end)
    let (wakeUps, add) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    self.wakeUps = (wakeUps, add)
  }

  /// Serves the streams until it is cancelled. At a graceful shutdown, it ends them all. Does nothing until the first
  /// stream opens.
  func run() async {
    await withGracefulShutdownHandler {
      for await _ in beginning.ends {}
      await withTaskGroup(of: Void.self) { group in
        group.addTask { await self.read() }
        group.addTask { await self.tick() }
        group.addTask { await self.watchSessions() }
        group.addTask { await self.watchStamps() }
        if canListen { group.addTask { await self.listen() } }
      }
    } onGracefulShutdown: {
      self.stop()
    }
  }

  // MARK: Opening and closing

  /// Opens a stream of a user's notifications. If the user has too many streams, the oldest is closed.
  ///
  /// - Parameter asked: the number of the last notification that the client has; nil to start from now.
  /// - Throws: ``AppError/sessionEnded`` if the account is gone, ``AppError/tooManyStreams``, ``AppError/stopping``.
  func open(of user: User.ID, _ session: Session.ID, after asked: Timestamp?) async throws -> Opened {
    guard let stamps = try await Stamps.read(of: [user], in: database)[user], let stamp = stamps[.notifications] else {
      throw AppError.sessionEnded
    }
    // A number ahead of the inbox was assigned before a backup was restored.
    let stream = NotificationStream(of: user, session, after: min(asked ?? stamp, stamp), stamps)
    try state.withLock { state in
      guard !state.hasStopped else { throw AppError.stopping }
      var inbox = state.inboxes[user] ?? Inbox(stamp: stamp, place: stamp)
      if inbox.streams.count >= limits.streamsPerUser {
        inbox.streams.removeFirst().end(saying: Self.makingRoom)
        state.count -= 1
      }
      guard state.count < limits.streams else { throw AppError.tooManyStreams }
      stream.join(at: inbox.place)
      inbox.streams.append(stream)
      state.inboxes[user] = inbox
      state.count += 1
    }
    beginning.end.finish()
    return Opened(stream, of: self)
  }

  private func close(_ stream: NotificationStream) {
    stream.end()
    state.withLock { state in
      guard var inbox = state.inboxes[stream.user], let place = inbox.streams.firstIndex(where: { $0 === stream })
      else { return }
      inbox.streams.remove(at: place)
      state.inboxes[stream.user] = inbox.streams.isEmpty ? nil : inbox
      state.count -= 1
    }
  }

  private func join(_ stream: NotificationStream) {
    state.withLock { state in
      if let inbox = state.inboxes[stream.user] { stream.join(at: inbox.place) }
    }
  }

  private func stop() {
    let streams = state.withLock { state in
      state.hasStopped = true
      return state.inboxes.values.flatMap(\.streams)
    }
    for stream in streams { stream.end() }
    beginning.end.finish()
  }

  /// The number of open streams.
  var count: Int { state.withLock { $0.count } }

  private var all: [NotificationStream] { state.withLock { $0.inboxes.values.flatMap(\.streams) } }

  private func streams(of user: User.ID) -> [NotificationStream] { state.withLock { $0.inboxes[user]?.streams ?? [] } }

  // MARK: Watching

  /// The newest state of each inbox that the streams have been offered.
  private var known: [InboxReader.Known] {
    state.withLock { state in
      state.inboxes.map { InboxReader.Known(user: $0, stamp: $1.stamp, place: $1.place) }
    }
  }

  /// Whether the database notifies this process of new items in inboxes.
  private var isListening: Bool { state.withLock { $0.isListening } }

  /// Has the inboxes checked soon.
  private func wakeUp(isListening: Bool = false) {
    if isListening { state.withLock { $0.isListening = true } }
    wakeUps.add.yield()
  }

  /// Offers new items of inboxes to their streams.
  ///
  /// - Returns: whether there is more.
  private func offer(_ news: [User.ID: InboxReader.Page]) -> Bool {
    state.withLock { state in
      var isMore = false
      for (user, page) in news {
        guard var inbox = state.inboxes[user] else { continue }
        if page.isFull { isMore = true } else { inbox.stamp = page.stamp }
        inbox.place = max(inbox.place, page.end)
        state.inboxes[user] = inbox
        for stream in inbox.streams { stream.offer(page.events) }
      }
      return isMore
    }
  }
}

extension AppError {
  static let tooManyStreams = AppError(
    .unavailable, "too-many-streams", "The service has too many open streams. Try again later.", retryAfter: 10)
  static let stopping = AppError(.unavailable, "stopping", "The service is restarting. Try again.", retryAfter: 1)
}

extension NotificationStreams {
  /// An open stream. It ends when this object is released.
  final class Opened: Sendable {
    let stream: NotificationStream
    private let streams: NotificationStreams

    init(_ stream: NotificationStream, of streams: NotificationStreams) {
      self.stream = stream
      self.streams = streams
    }

    deinit { streams.close(stream) }

    /// Sends notifications as fast as the client reads them, until the stream ends.
    @concurrent func write(to writer: any ResponseBodyWriter) async throws {
      defer { streams.close(stream) }
      while true {
        switch await stream.next() {
        case .send(let bytes): try await writer.write(bytes)
        case .catchUp(let place): try await catchUp(from: place, to: writer)
        case .end:
          writer.finish()
          return
        }
      }
    }

    @concurrent private func catchUp(from place: Timestamp, to writer: any ResponseBodyWriter) async throws {
      let page: InboxReader.Page?
      do {
        page = try await streams.inboxes.page(of: stream.user, after: place)
      } catch let error as PostgresError where error.isUnavailable {
        // Do not hang up: during an outage the client's next attempt is refused, and many clients then give up.
        try await Task.sleep(for: .seconds(1))
        return
      }
      guard let page else { return stream.end() }
      var bytes = ByteBuffer()
      for event in page.events {
        var one = event.bytes
        bytes.writeBuffer(&one)
      }
      if bytes.readableBytes > 0 { try await writer.write(bytes) }
      stream.advance(to: page.end)
      streams.join(stream)
    }
  }
}

/// Polling for this process's open streams.
extension NotificationStreams {
  /// Users whose inboxes, or stamps, one statement checks.
  private static let batch = 1000
  /// How long stamps that move gather before they are sent.
  private static let stampInterval = Duration.seconds(1)

  private func listen() async {
    for await _ in database.notifications(on: InboxItem.channel) {
      wakeUp(isListening: true)
    }
  }

  /// Sends heartbeats, and has the inboxes checked regularly, so that nothing depends on wake-ups.
  private func tick() async {
    var nextLook = ContinuousClock.now
    while !Task.isCancelled {
      let now = ContinuousClock.now
      let streams = all
      for stream in streams { stream.ping(idleSince: now - .seconds(limits.streamHeartbeat)) }
      if now >= nextLook, !streams.isEmpty {
        let pause: Duration = isListening ? .seconds(limits.streamCheck) : .milliseconds(100)
        nextLook = now + pause
        wakeUp()
      }
      // Ends early only when the task is cancelled, which also ends the loop.
      try? await Task.sleep(for: .milliseconds(100))
    }
  }

  /// Ends the streams of sessions that have ended. ``EndedSessions`` does not know all of these sessions: a stream
  /// outlives its access token, and its client may not have refreshed for a long time.
  private func watchSessions() async {
    var isFailing = false
    while !Task.isCancelled {
      await attempt(&isFailing) {
        let streams = all
        guard !streams.isEmpty else { return }
        let sessions = Array(Set(streams.map(\.session)))
        let rows = try await database.rows(
          "SELECT id FROM sessions WHERE id = ANY(\(sessions)) AND NOT (\(Session.isOpen))")
        let ended = Set(try rows.map { try $0[0] as Session.ID })
        for stream in streams where ended.contains(stream.session) { stream.end() }
      }
      try? await Task.sleep(for: .milliseconds(500))
    }
  }

  /// Notifies the streams of the collections that have changed: a hint that saves an open app from asking.
  private func watchStamps() async {
    var isFailing = false
    while !Task.isCancelled {
      await attempt(&isFailing) { try await readStamps() }
      try? await Task.sleep(for: Self.stampInterval)
    }
  }

  private func readStamps() async throws {
    let users = known.map(\.user)
    for start in stride(from: 0, to: users.count, by: Self.batch) {
      let batch = users[start..<min(start + Self.batch, users.count)]
      for (user, stamps) in try await Stamps.read(of: Array(batch), in: database) {
        for stream in streams(of: user) { stream.note(stamps) }
      }
    }
  }

  private func read() async {
    var isFailing = false
    for await _ in wakeUps.all {
      let start = ContinuousClock.now
      await attempt(&isFailing) {
        var isMore = true
        while isMore, !Task.isCancelled { isMore = try await readNews() }
      }
      // With very many streams, checking takes at most a quarter of the time.
      try? await Task.sleep(for: min(.milliseconds(500), (ContinuousClock.now - start) * 3))
    }
  }

  private func attempt(_ isFailing: inout Bool, _ body: () async throws -> Void) async {
    do {
      try await body()
      isFailing = false
    } catch {
      if !isFailing, !Task.isCancelled {
        logger.warning("notification streams cannot read the database", metadata: ["error": "\(error)"])
      }
      isFailing = true
    }
  }

  /// Reads new items from the inboxes that have streams, and offers them to these streams.
  ///
  /// - Returns: whether there is more.
  private func readNews() async throws -> Bool {
    let known = known
    var isMore = false
    for start in stride(from: 0, to: known.count, by: Self.batch) {
      let news = try await inboxes.news(of: known[start..<min(start + Self.batch, known.count)])
      if offer(news) { isMore = true }
    }
    return isMore
  }
}
