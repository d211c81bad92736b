import Logging
import Postgres

/// Polling for this process's open streams.
extension NotificationStreams {
  /// Users whose inboxes, or stamps, one statement checks.
  private static let batch = 1000
  /// How long stamps that move gather before they are sent.
  private static let stampInterval = Duration.seconds(1)

  func listen() async {
    for await _ in database.notifications(on: InboxItem.channel) {
      wakeUp(isListening: true)
    }
  }

  /// Sends heartbeats, and has the inboxes checked regularly, so that nothing depends on wake-ups.
  func tick() async {
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
  func watchSessions() async {
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
  func watchStamps() async {
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

  func read() async {
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
