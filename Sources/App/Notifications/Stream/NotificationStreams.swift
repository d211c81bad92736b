import HummingbirdCore
import Logging
import NIOCore
import Postgres
import ServiceLifecycle
import Synchronization

/// The notification streams that this process has open. One reader serves them all: it checks which inboxes have
/// changed, at regular intervals and when it hears that some may have, and reads the new items.
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

  /// Notifications that one read takes from an inbox.
  private static let pageLength = 100
  /// Users whose inboxes, or stamps, one statement checks.
  private static let batch = 1000
  /// How long stamps that move gather before they are sent.
  private static let stampInterval = Duration.seconds(1)
  /// The last message of a stream that is closed to make room for another of the same user. It makes the client wait
  /// before it reconnects, because that closes yet another stream.
  private static let makingRoom = ": too many streams\nretry: 60000\n\n"

  private let database: Database
  private let publicURL: PublicURL
  private let canListen: Bool
  private let limits: ConnectionLimits
  private let logger: Logger
  private let state = Mutex(State())
  /// Finishes when the first stream opens.
  private let beginning: (ends: AsyncStream<Void>, end: AsyncStream<Void>.Continuation)
  private let wakeUps: (all: AsyncStream<Void>, add: AsyncStream<Void>.Continuation)

  init(_ dependencies: Dependencies, limits: ConnectionLimits = ConnectionLimits()) {
    database = dependencies.database
    publicURL = dependencies.publicURL
    canListen = dependencies.canListen
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

  /// An open stream. It ends when this object is released.
  final class Opened: Sendable {
    let stream: NotificationStream
    private let streams: NotificationStreams

    fileprivate init(_ stream: NotificationStream, of streams: NotificationStreams) {
      self.stream = stream
      self.streams = streams
    }

    deinit { streams.close(stream) }

    /// Sends notifications as fast as the client reads them, until the stream ends.
    func write(to writer: inout any ResponseBodyWriter) async throws {
      defer { streams.close(stream) }
      while true {
        switch await stream.next() {
        case .send(let bytes): try await writer.write(bytes)
        case .catchUp(let place): try await catchUp(from: place, to: &writer)
        case .end:
          try await writer.finish(nil)
          return
        }
      }
    }

    private func catchUp(from place: Timestamp, to writer: inout any ResponseBodyWriter) async throws {
      let page: Page?
      do {
        page = try await streams.page(of: stream.user, after: place)
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

  // MARK: Background tasks

  private func listen() async {
    for await _ in database.notifications(on: NotificationQueue.channel) {
      state.withLock { $0.isListening = true }
      wakeUps.add.yield()
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
        let isListening = state.withLock { $0.isListening }
        let pause: Duration = isListening ? .seconds(1) : .milliseconds(100)
        nextLook = now + pause
        wakeUps.add.yield()
      }
      // Ends early only when the task is cancelled, which ends the loop, too.
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

  /// Tells the streams which collections have changed: a hint that saves an open app from asking.
  private func watchStamps() async {
    var isFailing = false
    while !Task.isCancelled {
      await attempt(&isFailing) { try await readStamps() }
      try? await Task.sleep(for: Self.stampInterval)
    }
  }

  private func readStamps() async throws {
    let users = state.withLock { Array($0.inboxes.keys) }
    for start in stride(from: 0, to: users.count, by: Self.batch) {
      let batch = users[start..<min(start + Self.batch, users.count)]
      for (user, stamps) in try await Stamps.read(of: Array(batch), in: database) {
        let streams = state.withLock { $0.inboxes[user]?.streams ?? [] }
        for stream in streams { stream.note(stamps) }
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

  // MARK: Reading inboxes

  /// Reads new items from the inboxes that have streams, and offers them to these streams.
  ///
  /// - Returns: whether there is more.
  private func readNews() async throws -> Bool {
    let known = state.withLock { state in state.inboxes.map { ($0, $1.stamp, $1.place) } }
    var isMore = false
    for start in stride(from: 0, to: known.count, by: Self.batch) {
      let batch = known[start..<min(start + Self.batch, known.count)]
      let (users, stamps, places) = (batch.map { $0.0 }, batch.map { $0.1 }, batch.map { $0.2 })
      let rows = try await database.rows(
        """
        SELECT moved.user_id, moved.stamp, item.*
        FROM (
          SELECT known.user_id, known.place, s.notifications AS stamp
          FROM unnest(\(users), \(stamps), \(places)) AS known (user_id, stamp, place)
          JOIN user_stamps AS s ON s.user_id = known.user_id
          WHERE s.notifications <> known.stamp
        ) AS moved
        LEFT JOIN LATERAL (
          \(Self.items(of: "moved.user_id", after: "moved.place"))
        ) AS item ON true
        ORDER BY moved.user_id, item.place
        """)
      var news: [User.ID: (stamp: Timestamp, events: [NotificationStream.Event])] = [:]
      for row in rows {
        let user: User.ID = try row["user_id"]
        let new = try event(row)
        if news[user] == nil { news[user] = (try row["stamp"], []) }
        if let new { news[user]?.events.append(new) }
      }
      if offer(news) { isMore = true }
    }
    return isMore
  }

  /// - Returns: whether there is more.
  private func offer(_ news: [User.ID: (stamp: Timestamp, events: [NotificationStream.Event])]) -> Bool {
    state.withLock { state in
      var isMore = false
      for (user, (stamp, events)) in news {
        guard var inbox = state.inboxes[user] else { continue }
        if let last = events.last, events.count == Self.pageLength {
          isMore = true
          inbox.place = max(inbox.place, last.place)
        } else {
          inbox.stamp = stamp
          inbox.place = max(inbox.place, stamp)
        }
        state.inboxes[user] = inbox
        for stream in inbox.streams { stream.offer(events) }
      }
      return isMore
    }
  }

  private struct Page: Sendable {
    let events: [NotificationStream.Event]
    /// The page holds everything up to here.
    let end: Timestamp
  }

  /// A page of an inbox; nil if the account is gone.
  private func page(of user: User.ID, after place: Timestamp) async throws -> Page? {
    // One snapshot: the rows include everything up to the stamp.
    let rows = try await database.rows(
      """
      SELECT s.notifications AS stamp, item.*
      FROM user_stamps AS s
      LEFT JOIN LATERAL (
        \(Self.items(of: "s.user_id", after: "\(place)"))
      ) AS item ON true
      WHERE s.user_id = \(user)
      ORDER BY item.place
      """)
    guard let first = rows.first else { return nil }
    let stamp: Timestamp = try first["stamp"]
    let events = try rows.compactMap(event)
    guard let last = events.last, events.count == Self.pageLength else { return Page(events: events, end: stamp) }
    return Page(events: events, end: last.place)
  }

  private static func items(of recipient: SQL, after place: SQL) -> SQL {
    """
    SELECT n.filed_at AS place, \(InboxItem.columns)
    FROM notifications AS n
    WHERE n.recipient_id = \(recipient) AND n.filed_at > \(place)
      AND NOT EXISTS (SELECT 1 FROM hidden AS h WHERE h.user_id = n.recipient_id AND h.hidden_id = n.person_id)
    ORDER BY n.filed_at
    LIMIT \(pageLength)
    """
  }

  private func event(_ row: Row) throws -> NotificationStream.Event? {
    guard let place: Timestamp = try row["place"] else { return nil }
    var json = JSONWriter()
    let item = try InboxItem(row: row)
    PublicURL.$base.withValue(publicURL.text) { item.write(to: &json) }
    var bytes = ByteBuffer(string: "id: \(place.microseconds)\nevent: notification\ndata: ")
    bytes.writeImmutableBuffer(json.buffer)
    bytes.writeStaticString("\n\n")
    return NotificationStream.Event(place: place, bytes: bytes)
  }
}

extension AppError {
  static let tooManyStreams = AppError(
    .unavailable, "too-many-streams", "This process has too many open streams. Try again later.", retryAfter: 10)
  static let stopping = AppError(.unavailable, "stopping", "This process is shutting down. Try again.", retryAfter: 1)
}
