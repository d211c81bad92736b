import AsyncHTTPClient
import NIOHTTP1
import Synchronization

/// A token that authenticates us to a provider. It is made when it is needed, by one task at a time, and all callers
/// share it until it expires or is refused.
final class ProviderToken: Sendable {
  struct Made: Sendable {
    let text: String
    /// How long the token is used.
    let lifetime: Duration
  }

  private struct State {
    var current: (text: String, end: ContinuousClock.Instant)?
    /// Until then, no refused token is replaced.
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
  private let flight = SingleFlight<String>()

  /// - Parameter replacementPause: the minimum time between two tokens that replace refused ones. New tokens do not fix
  ///   a wrong key, and providers reject clients that make too many.
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
      return .making(flight.join(makeOne))
    }
    return try await text(step)
  }

  /// A token other than the refused one; nil if it is too soon to make another.
  func text(insteadOf refused: String) async throws -> String? {
    let now = self.now()
    let step = state.withLock { state -> Step? in
      if let current = state.current, current.end > now, current.text != refused { return .known(current.text) }
      if let running = flight.current { return .making(running) }
      if let next = state.nextReplacement, next > now { return nil }
      state.nextReplacement = now + replacementPause
      return .making(flight.join(makeOne))
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

  @Sendable private func makeOne() async throws -> String {
    let made = try await make()
    let end = now() + made.lifetime
    state.withLock { $0.current = (made.text, end) }
    return made.text
  }
}

extension ProviderToken {
  /// Sends a request with the token. If the provider refuses the token, sends it once more with another one.
  ///
  /// - Parameter scheme: the first word of the header, spelled as in the provider's documentation.
  func send(
    _ request: HTTPClientRequest, scheme: String, by client: HTTPClient, within limit: Duration,
    isRefused: (OutgoingResponse) -> Bool
  ) async throws -> OutgoingResponse {
    func send(with token: String) async throws -> OutgoingResponse {
      var request = request
      request.headers.add(name: "authorization", value: "\(scheme) \(token)")
      return try await client.response(to: request, within: limit)
    }
    let token = try await text()
    let response = try await send(with: token)
    guard isRefused(response), let another = try await text(insteadOf: token) else { return response }
    return try await send(with: another)
  }
}
