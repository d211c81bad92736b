import Synchronization

/// A token by which a provider knows us. It is made when it is needed, one at a time whoever asks, and serves everybody
/// until it is old or refused.
final class ProviderToken: Sendable {
  struct Made: Sendable {
    let text: String
    /// For so long it is used.
    let lifetime: Duration
  }

  private struct State {
    var current: (text: String, end: ContinuousClock.Instant)?
    var making: Task<String, any Error>?
    /// Before this moment no other one is made for a refused one.
    var nextReplacement: ContinuousClock.Instant?
  }

  private enum Step: Sendable {
    case known(String)
    case making(Task<String, any Error>)
  }

  private let replacementPause: Duration
  private let now: @Sendable () -> ContinuousClock.Instant
  private let make: @Sendable () async throws -> Made
  private let state = Mutex(State())

  /// - Parameter replacementPause: between two that are made because the one before was refused: a wrong key is not
  ///   mended by more tokens, and providers turn away who makes too many.
  init(
    replacementPause: Duration, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
    make: @escaping @Sendable () async throws -> Made
  ) {
    self.replacementPause = replacementPause
    self.now = now
    self.make = make
  }

  func text() async throws -> String {
    let now = self.now()
    let step = state.withLock { state -> Step in
      if let current = state.current, current.end > now { return .known(current.text) }
      return .making(begin(&state))
    }
    return try await text(step)
  }

  /// Another one than that which was refused; nil if it is too soon to make one.
  func text(insteadOf refused: String) async throws -> String? {
    let now = self.now()
    let step = state.withLock { state -> Step? in
      if let current = state.current, current.end > now, current.text != refused { return .known(current.text) }
      if state.making == nil {
        if let next = state.nextReplacement, next > now { return nil }
        state.nextReplacement = now + replacementPause
      }
      return .making(begin(&state))
    }
    guard let step else { return nil }
    return try await text(step)
  }

  private func text(_ step: Step) async throws -> String {
    switch step {
    case .known(let text): return text
    case .making(let making): return try await making.value
    }
  }

  private func begin(_ state: inout State) -> Task<String, any Error> {
    if let making = state.making { return making }
    // Not a child of whoever happens to be first: the others must not lose by its end.
    let making = Task { try await self.makeOne() }
    state.making = making
    return making
  }

  private func makeOne() async throws -> String {
    do {
      let made = try await make()
      let end = now() + made.lifetime
      state.withLock { state in
        state.current = (made.text, end)
        state.making = nil
      }
      return made.text
    } catch {
      state.withLock { $0.making = nil }
      throw error
    }
  }
}
