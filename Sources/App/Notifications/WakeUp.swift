import ServiceLifecycle
import Synchronization

/// Ends the pause of one task early.
final class WakeUp: Sendable {
  private struct State: Sendable {
    var isWoken = false
    var pause: Task<Void, Never>?
  }

  private let state = Mutex(State())

  func wake() {
    state.withLock { state in
      state.isWoken = true
      state.pause?.cancel()
    }
  }

  /// Waits until the deadline, a wake-up, a cancellation or a graceful shutdown. Does not wait if it was woken since
  /// the last call.
  ///
  /// - Returns: whether it was woken.
  func wait(until deadline: ContinuousClock.Instant) async -> Bool {
    let pause = state.withLock { state -> Task<Void, Never>? in
      if state.isWoken { return nil }
      // It throws only when it is cancelled, which ends the pause.
      let pause = Task<Void, Never> { try? await Task.sleep(until: deadline, clock: .continuous) }
      state.pause = pause
      return pause
    }
    if let pause {
      await withTaskCancellationOrGracefulShutdownHandler {
        await pause.value
      } onCancelOrGracefulShutdown: {
        pause.cancel()
      }
    }
    return state.withLock { state in
      defer { state = State() }
      return state.isWoken
    }
  }
}
