import Logging

/// What a listener hears.
public enum ListenerEvent: Sendable, Equatable {
  /// Somebody ran `NOTIFY channel, 'payload'` and committed.
  case notification(channel: String, payload: String)
  /// The connection is new, or was lost for a while: whatever was sent meanwhile was missed. Comes first, too.
  case mayHaveMissed
}

extension Database {
  /// Hears what is sent to some channels, until the sequence is no longer iterated over. Reconnects by itself.
  ///
  /// LISTEN belongs to a session, so it needs a direct connection to the server and not one through a pooler in
  /// transaction mode.
  ///
  /// - Parameter channels: names as in `NOTIFY`; at most 63 bytes each.
  public func notifications(on channels: String...) -> AsyncStream<ListenerEvent> {
    let (stream, continuation) = AsyncStream.makeStream(of: ListenerEvent.self, bufferingPolicy: .bufferingNewest(1024))
    let task = Task.detached { [self] in
      var backoff = Backoff()
      while !Task.isCancelled, !isClosed {
        do {
          try await listen(to: channels) { event in
            backoff.reset()
            if case .dropped = continuation.yield(event) { continuation.yield(.mayHaveMissed) }
          }
        } catch {
          backoff.note(error)
        }
        try? await Task.sleep(for: backoff.delay)
      }
      continuation.finish()
    }
    continuation.onTermination = { _ in task.cancel() }
    return stream
  }

  /// Listens on one connection for as long as it lives.
  private func listen(to channels: [String], _ hear: (ListenerEvent) -> Void) async throws {
    let (events, continuation) = AsyncStream.makeStream(of: ListenerEvent.self)
    let connection = try await openListener { event in
      if let event { continuation.yield(event) } else { continuation.finish() }
    }
    defer { connection.close() }
    for channel in channels {
      let name = "\"" + channel.replacing("\"", with: "\"\"") + "\""
      _ = try await connection.submit(["LISTEN \(unescaped: name)"], timeout: .seconds(10)).value()
    }
    hear(.mayHaveMissed)
    for await event in events { hear(event) }
    throw PostgresError(.connectionLost, "the listening connection is lost")
  }
}

extension Database {
  /// Tells whoever listens to a channel that it is worth looking again: `NOTIFY channel`, soon, in no transaction of the
  /// caller's.
  ///
  /// Only a hint, on which nothing may depend: it may be lost, also silently, or heard twice. Returns at once and never
  /// fails. Many calls become few: the first is sent at once, and those within 50 ms after it as one when they are over.
  /// It waits for no transaction of the caller's, so call it after the commit that there is to see. Works through a
  /// pooler, too; hearing it does not. Does nothing once the database is closed.
  ///
  /// - Parameter channel: a name as in `NOTIFY`; at most 63 bytes.
  public func notify(_ channel: String) {
    guard !isClosed, hints.withLock({ $0.updateValue(true, forKey: channel) }) == nil else { return }
    Task.detached { [self] in await sendHints(to: channel) }
  }

  /// Sends one now, and another after 50 ms if it is wanted by then, and so on.
  private func sendHints(to channel: String) async {
    while takeHint(to: channel) {
      let next = ContinuousClock.now + .milliseconds(50)
      do {
        // Not among the reads: it waits for whoever commits a NOTIFY at the moment, and those behind it would, too.
        try await runAlone("SELECT pg_notify(\(channel), '')")
      } catch {
        configuration.logger.debug("hint not sent", metadata: ["channel": "\(channel)", "error": "\(error)"])
      }
      try? await Task.sleep(until: next)
    }
  }

  private func takeHint(to channel: String) -> Bool {
    hints.withLock { hints in
      let isWanted = hints[channel] == true && !isClosed
      hints[channel] = isWanted ? false : nil
      return isWanted
    }
  }
}
