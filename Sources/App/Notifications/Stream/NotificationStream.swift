import HTTPServer
import Postgres
import Synchronization

/// Sends a user's notifications to one client as they arrive, as Server-Sent Events. Also sends which collections have
/// changed.
///
/// A live stream gets each notification from ``NotificationStreams``. A stream is behind if it starts in the past or if
/// its client reads too slowly. It then reads the inbox itself, at the client's pace, until it has caught up.
final class NotificationStream: Sendable {
  /// The writer's next step.
  enum Step: Sendable {
    case send(ByteBuffer)
    /// Read the inbox from after this place.
    case catchUp(Timestamp)
    case end
  }

  /// A notification, ready to send.
  struct Event: Sendable {
    let place: Timestamp
    let bytes: ByteBuffer
  }

  private struct State: Sendable {
    var waiting: ByteBuffer
    /// Its place in the inbox.
    var place: Timestamp
    /// The newest that are known.
    var stamps: Stamps
    /// The collections whose stamps the client has not got yet.
    var moved: Set<Collection> = []
    var isLive = false
    var hasEnded = false
    var lastSent = ContinuousClock.now
    var writer: CheckedContinuation<Step, Never>?

    mutating func step() -> Step? {
      if !moved.isEmpty {
        waiting.writeImmutableBuffer(changed)
        moved = []
      }
      if waiting.readableBytes > 0 {
        defer { waiting = ByteBuffer() }
        lastSent = .now
        return .send(waiting)
      }
      if hasEnded { return .end }
      return isLive ? nil : .catchUp(place)
    }

    /// Without an `id`, so that the client resumes after its last notification.
    private var changed: ByteBuffer {
      var json = JSONWriter()
      json.object {
        for collection in Collection.allCases where moved.contains(collection) {
          $0.member(name: collection.rawValue) { stamps[collection].map(Stamp.init).write(to: &$0) }
        }
      }
      var bytes = ByteBuffer(string: "event: changed\ndata: ")
      bytes.writeImmutableBuffer(json.buffer)
      bytes.writeStaticString("\n\n")
      return bytes
    }
  }

  /// Bytes that may wait for a live stream's writer. With more, the stream is behind.
  private static let capacity = 64 << 10

  let user: User.ID
  let session: Session.ID
  private let state: Mutex<State>

  /// - Parameters:
  ///   - place: the place in the inbox after which the stream begins. The client gets it immediately, so that it misses
  ///     nothing if it loses the connection before the first notification.
  ///   - stamps: the client gets only later ones.
  init(of user: User.ID, _ session: Session.ID, after place: Timestamp, _ stamps: Stamps) {
    self.user = user
    self.session = session
    let opening = ByteBuffer(string: ": open\nretry: 2000\nid: \(place.microseconds)\n\n")
    state = Mutex(State(waiting: opening, place: place, stamps: stamps))
  }

  /// Waits for the next step. Cancelling the task ends the stream.
  func next() async -> Step {
    await withTaskCancellationHandler {
      await withCheckedContinuation { (continuation: CheckedContinuation<Step, Never>) in
        let step = state.withLock { state -> Step? in
          let step = state.step()
          if step == nil { state.writer = continuation }
          return step
        }
        if let step { continuation.resume(returning: step) }
      }
    } onCancel: {
      end()
    }
  }

  private func change(_ body: (inout State) -> Void) {
    let woken = state.withLock { state -> (CheckedContinuation<Step, Never>, Step)? in
      body(&state)
      guard let writer = state.writer, let step = state.step() else { return nil }
      state.writer = nil
      return (writer, step)
    }
    if let (writer, step) = woken { writer.resume(returning: step) }
  }

  /// Offers new items of the inbox, in order and without a gap since the last call. Some may be known already.
  func offer(_ events: [Event]) {
    change { state in
      for event in events where state.isLive && !state.hasEnded && event.place > state.place {
        guard state.waiting.readableBytes < Self.capacity else {
          state.isLive = false
          return
        }
        var bytes = event.bytes
        state.waiting.writeBuffer(&bytes)
        state.place = event.place
      }
    }
  }

  /// Records that everything up to this place was sent while the stream was behind.
  func advance(to place: Timestamp) {
    change { $0.place = max($0.place, place) }
  }

  /// Makes the stream live if it has caught up with this place. From then on it is offered everything that follows.
  func join(at place: Timestamp) {
    change { if $0.place >= place { $0.isLive = true } }
  }

  /// Sends the stamps that have moved since the last call. A slow client gets the newest ones when it reads again.
  func note(_ stamps: Stamps) {
    change { state in
      // Items read before the stream was opened are older.
      let moved = Collection.allCases.filter { collection in
        guard let new = stamps[collection], let old = state.stamps[collection] else { return false }
        return new > old
      }
      guard !moved.isEmpty, !state.hasEnded else { return }
      state.stamps = stamps
      state.moved.formUnion(moved)
    }
  }

  /// Shows an idle client, and the proxies in between, that the connection is alive.
  func ping(idleSince time: ContinuousClock.Instant) {
    change { state in
      if state.writer != nil, state.lastSent <= time { state.waiting.writeString(": ping\n\n") }
    }
  }

  /// Ends the stream. Notifications that were not sent yet are in the inbox, where the client can ask for them again.
  ///
  /// - Parameter last: sent before the end.
  func end(saying last: String = "") {
    change { state in
      guard !state.hasEnded else { return }
      state.hasEnded = true
      (state.waiting, state.moved) = (ByteBuffer(string: last), [])
    }
  }
}
