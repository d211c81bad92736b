import NIOCore
import Postgres
import Synchronization

/// Somebody who is sent what comes into their inbox, as it comes, in the form of Server-Sent Events.
///
/// While it is live, a stream is given each notification by ``NotificationStreams``. One that is behind, because it begins
/// some time ago or its reader takes in less than there is, reads the inbox by itself, at its reader's pace, until it has
/// caught up.
final class NotificationStream: Sendable {
  /// What its writer does next.
  enum Step: Sendable {
    case send(ByteBuffer)
    /// Reads the inbox from after this place on.
    case catchUp(Timestamp)
    case end
  }

  /// A notification, ready to be sent.
  struct Event: Sendable {
    let place: Timestamp
    let bytes: ByteBuffer
  }

  private struct State: Sendable {
    var waiting: ByteBuffer
    /// Where in the inbox it is.
    var place: Timestamp
    var isLive = false
    var hasEnded = false
    var lastSent = ContinuousClock.now
    var writer: CheckedContinuation<Step, Never>?

    mutating func step() -> Step? {
      if waiting.readableBytes > 0 {
        defer { waiting = ByteBuffer() }
        lastSent = .now
        return .send(waiting)
      }
      if hasEnded { return .end }
      return isLive ? nil : .catchUp(place)
    }
  }

  /// So many bytes may wait for a live stream's writer; then it is behind.
  private static let capacity = 64 << 10

  let user: User.ID
  let session: Session.ID
  private let state: Mutex<State>

  /// - Parameter place: in the inbox, after which it begins. Its reader is told, so that whoever loses the connection
  ///   before the first notification comes misses none.
  init(of user: User.ID, _ session: Session.ID, after place: Timestamp) {
    self.user = user
    self.session = session
    let opening = ByteBuffer(string: ": open\nretry: 2000\nid: \(place.microseconds)\n\n")
    state = Mutex(State(waiting: opening, place: place))
  }

  /// Waits until there is something to do. Cancelling the task ends the stream.
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

  /// What has come into the inbox, in order, with nothing left out since the last time. Some of it may be known.
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

  /// What was read while it was behind was sent.
  func advance(to place: Timestamp) {
    change { $0.place = max($0.place, place) }
  }

  /// Makes it live if it has caught up with this place, after which it will be offered everything.
  func join(at place: Timestamp) {
    change { if $0.place >= place { $0.isLive = true } }
  }

  /// Shows an idle reader, and whatever is between, that the connection lives.
  func ping(idleSince time: ContinuousClock.Instant) {
    change { state in
      if state.writer != nil, state.lastSent <= time { state.waiting.writeString(": ping\n\n") }
    }
  }

  /// Ends it. What waits to be sent is in the inbox, to be asked for again.
  ///
  /// - Parameter last: is still said.
  func end(saying last: String = "") {
    change { state in
      guard !state.hasEnded else { return }
      state.hasEnded = true
      state.waiting = ByteBuffer(string: last)
    }
  }
}
