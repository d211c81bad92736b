import Foundation

/// Passes notifications that arrive to all who wait for them.
final class Arrivals: Sendable {
  private struct State {
    var consumers: [Int: AsyncStream<InboxItem>.Continuation] = [:]
    var nextID = 0
    var seen: Set<InboxItem.ID> = []
  }

  private let state = Guarded(State())

  deinit { end() }

  /// A new consumer's stream.
  func stream() -> AsyncStream<InboxItem> {
    let (stream, continuation) = AsyncStream<InboxItem>.makeStream()
    let id = state.withLock { state in
      state.nextID += 1
      state.consumers[state.nextID] = continuation
      return state.nextID
    }
    continuation.onTermination = { [weak self] _ in
      self?.state.withLock { _ = $0.consumers.removeValue(forKey: id) }
    }
    return stream
  }

  /// Passes on a notification, unless it has arrived before.
  func add(_ item: InboxItem) {
    let consumers = state.withLock { state -> [AsyncStream<InboxItem>.Continuation] in
      state.seen.insert(item.id).inserted ? Array(state.consumers.values) : []
    }
    for consumer in consumers { consumer.yield(item) }
  }

  /// Ends the streams of all consumers.
  func end() {
    let consumers = state.withLock { state in
      defer { state.consumers = [:] }
      return Array(state.consumers.values)
    }
    for consumer in consumers { consumer.finish() }
  }
}
