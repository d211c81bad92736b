import MusterKit
import Postgres

/// Reads a stream in a task of its own, and keeps what came.
final class StreamReader: Sendable {
  private struct State {
    var connections = 0
    var notifications: [InboxItem] = []
    var changes: [[CacheCollection: Stamp]] = []
    var lastEventID: String?
    var hasEnded = false
    var error: (any Error)?
  }

  private let state: Lock<State>
  private let task: Task<Void, Never>

  init(_ stream: NotificationStream) {
    let state = Lock(State())
    self.state = state
    task = Task {
      do {
        var iterator = stream.makeAsyncIterator()
        while let event = try await iterator.next() {
          let id = iterator.lastEventID
          state.withLock { state in
            state.lastEventID = id
            switch event {
            case .connected: state.connections += 1
            case .notification(let item): state.notifications.append(item)
            case .changed(let stamps): state.changes.append(stamps)
            }
          }
        }
      } catch {
        state.withLock { $0.error = error }
      }
      state.withLock { $0.hasEnded = true }
    }
  }

  /// The number of times that the stream has connected.
  var connections: Int { state.withLock { $0.connections } }
  var notifications: [InboxItem] { state.withLock { $0.notifications } }
  /// The titles of the events that the notifications are about.
  var titles: [String] { notifications.compactMap(\.title) }
  var changed: Set<CacheCollection> { state.withLock { Set($0.changes.flatMap(\.keys)) } }
  var lastEventID: String? { state.withLock { $0.lastEventID } }
  var hasEnded: Bool { state.withLock { $0.hasEnded } }
  var error: (any Error)? { state.withLock { $0.error } }

  /// Cancels the reading, and waits for its end.
  func stop() async {
    task.cancel()
    await task.value
  }
}
