import Logging

extension Database {
  /// Listens to channels until iteration over the sequence ends. Reconnects automatically.
  ///
  /// LISTEN belongs to a session, so it needs a direct connection to the server. A pooler in transaction mode does not
  /// work.
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
  private func listen(to channels: [String], _ onEvent: (ListenerEvent) -> Void) async throws {
    let (events, continuation) = AsyncStream.makeStream(of: ListenerEvent.self)
    let connection = try await openListener { event in
      if let event { continuation.yield(event) } else { continuation.finish() }
    }
    defer { connection.close() }
    for channel in channels {
      _ = try await connection.submit(["LISTEN \(unescaped: channel.asIdentifier)"], timeout: .seconds(10)).value()
    }
    onEvent(.mayHaveMissed)
    for await event in events { onEvent(event) }
    throw PostgresError(.connectionLost, "the listening connection is lost")
  }
}

extension Database {
  /// Sends `NOTIFY channel` soon, outside the caller's transaction, to hint that listeners should look again.
  ///
  /// This is only a hint: it is lost if this process ends, and may arrive late or twice, so nothing may depend on it. The call returns
  /// immediately and never fails. Calls are combined: the first is sent immediately, and those of the next 50 ms are
  /// sent as one. The hint does not wait for the caller's transaction, so call this after the commit. Sending works
  /// through a pooler, but listening does not. Does nothing once the database is closed.
  ///
  /// - Parameter channel: a name as in `NOTIFY`; at most 63 bytes.
  public func notify(_ channel: String) {
    guard !isClosed, !configuration.isPortable, hints.add(to: channel) else { return }
    Task.detached { [self] in await sendHints(to: channel) }
  }

  /// Sends a hint now, then another every 50 ms while one is due.
  private func sendHints(to channel: String) async {
    while hints.take(for: channel, isWanted: !isClosed) {
      var next = ContinuousClock.now + .milliseconds(50)
      do {
        // Not on a shared connection: NOTIFY waits for other transactions that are committing a NOTIFY, and the reads
        // behind it would also wait.
        try await runAlone("SELECT pg_notify(\(channel), '')")
      } catch {
        configuration.logger.debug("hint not sent", metadata: ["channel": "\(channel)", "error": "\(error)"])
        // Listeners may rely on hints, and poll less.
        _ = hints.add(to: channel)
        next += .milliseconds(450)
      }
      try? await Task.sleep(until: next)
    }
  }
}

/// Channels that were sent a hint within the last 50 ms, and whether another is due: see ``Database/notify(_:)``.
final class Hints: Sendable {
  private let channels = Lock<[String: Bool]>([:])

  /// Whether no sender runs.
  var isEmpty: Bool { channels.withLock { $0.isEmpty } }

  /// - Returns: whether the channel has no sender, which the caller must then start.
  func add(to channel: String) -> Bool { channels.withLock { $0.updateValue(true, forKey: channel) } == nil }

  /// Takes the hint that is due.
  ///
  /// - Parameter isWanted: false to drop it.
  /// - Returns: false if there is none. The channel's sender must then end.
  func take(for channel: String, isWanted: Bool) -> Bool {
    channels.withLock { channels in
      let isDue = channels[channel] == true && isWanted
      channels[channel] = isDue ? false : nil
      return isDue
    }
  }
}

/// An event on a listening connection.
public enum ListenerEvent: Sendable, Equatable {
  /// A session ran `NOTIFY channel, 'payload'` and committed.
  case notification(channel: String, payload: String)
  /// The connection is new, or was lost for a while. Notifications sent in between were missed. This is also the first
  /// event.
  case mayHaveMissed
}
