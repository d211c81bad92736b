import AsyncHTTPClient
import JWTKit
import Logging
import NIOHTTP1
import ServiceLifecycle
import Synchronization

/// A provider's public keys (a JWKS), fetched in the background and kept for as long as the provider says. While the
/// provider is down, the known keys stay in use.
final class ProviderKeys: Service {
  struct Timing: Sendable {
    /// Bounds for the maximum age in `Cache-Control`.
    var minimumAge = Duration.seconds(300)
    var maximumAge = Duration.seconds(86_400)
    /// The pause between fetches for unknown key ids, which anyone can make up.
    var unknownKeyPause = Duration.seconds(60)
    /// The timeout of one fetch, and so of a request that waits for it.
    var patience = Duration.seconds(3)
    var now: @Sendable () -> ContinuousClock.Instant = { .now }
  }

  /// All keys of the provider, each for RS256 only, whatever a token's header says.
  private struct Known: Sendable {
    let collection: JWTKeyCollection
    let ids: Set<String>
  }

  private struct State {
    var known: Known?
    /// Failed fetches since the last success.
    var failures = 0
    var nextFetch: ContinuousClock.Instant?
    var nextFetchForUnknown: ContinuousClock.Instant?
  }

  private let url: String
  private let client: HTTPClient
  private let timing: Timing
  private let logger: Logger
  private let state = Mutex(State())
  private let flight = SingleFlight<Void>()

  init(url: String, client: HTTPClient, timing: Timing = Timing(), logger: Logger) {
    self.url = url
    self.client = client
    self.timing = timing
    self.logger = logger
  }

  /// Keeps the keys fresh until graceful shutdown.
  func run() async throws {
    while !Task.isShuttingDownGracefully, !Task.isCancelled {
      let now = timing.now()
      let next = state.withLock { $0.nextFetch }
      guard let next, next > now else {
        await withTaskCancellationOrGracefulShutdownHandler {
          await fetch()
        } onCancelOrGracefulShutdown: {
          self.flight.cancel()
        }
        continue
      }
      let pause = next - now
      // Ends early when the process is asked to stop.
      try? await cancelWhenGracefulShutdown { try await Task.sleep(for: pause) }
    }
  }

  /// The keys to verify a token that names this key. Nil if the provider has no such key. An unknown key triggers a
  /// fetch, but not often.
  ///
  /// - Throws: ``AppError`` `provider-unavailable` while no key is known.
  func verifying(_ id: String) async throws -> JWTKeyCollection? {
    let now = timing.now()
    let fetch = state.withLock { state -> Task<Void, any Error>? in
      if state.known?.ids.contains(id) == true { return nil }
      if let running = flight.current { return running }
      if let next = state.nextFetchForUnknown, next > now { return nil }
      state.nextFetchForUnknown = now + timing.unknownKeyPause
      return flight.join(fetchOnce)
    }
    _ = await fetch?.result
    guard let known = state.withLock({ $0.known }) else { throw AppError.providerUnavailable }
    return known.ids.contains(id) ? known.collection : nil
  }

  /// Fetches the keys. Callers that ask while a fetch is running wait for the same result.
  func fetch() async {
    _ = await flight.join(fetchOnce).result
  }

  @Sendable private func fetchOnce() async {
    do {
      let (known, age) = try await download()
      let now = timing.now()
      state.withLock { state in
        state.known = known
        state.failures = 0
        state.nextFetch = now + age
      }
    } catch {
      let now = timing.now()
      state.withLock { state in
        state.failures += 1
        state.nextFetch = now + min(Duration.seconds(1 << min(state.failures, 6)), timing.minimumAge)
      }
      if Task.isCancelled { return }
      logger.warning("a provider's keys cannot be fetched", metadata: ["url": "\(url)", "error": "\(error)"])
    }
  }

  private struct Unusable: Error {
    let reason: String
  }

  private func download() async throws -> (Known, age: Duration) {
    var request = HTTPClientRequest(url: url)
    request.headers.add(name: "Accept", value: "application/json")
    let response = try await client.response(to: request, within: timing.patience)
    guard response.status == 200 else { throw Unusable(reason: "status \(response.status)") }
    // Parsed here, because the library rejects the whole set if it does not know the type of one key.
    guard case .object(let document) = response.json, case .array(let keys) = document["keys"] else {
      throw Unusable(reason: "not a set of keys")
    }
    let collection = JWTKeyCollection()
    var ids: Set<String> = []
    for case .object(let key) in keys.prefix(100) {
      guard key["kty"] == .string("RSA"), key["use"] ?? .string("sig") == .string("sig"),
        key["alg"] ?? .string("RS256") == .string("RS256"), case .string(let id) = key["kid"],
        case .string(let modulus) = key["n"], case .string(let exponent) = key["e"],
        let rsa = try? Insecure.RSA.PublicKey(modulus: modulus, exponent: exponent)
      else { continue }
      await collection.add(rsa: rsa, digestAlgorithm: .sha256, kid: JWKIdentifier(string: id))
      ids.insert(id)
    }
    guard !ids.isEmpty else { throw Unusable(reason: "no RSA key") }
    return (Known(collection: collection, ids: ids), age(response.headers))
  }

  /// How long a response may be kept.
  func age(_ headers: HTTPHeaders) -> Duration {
    func number(_ text: Substring?) -> Int { max(0, min(text.flatMap { Int($0) } ?? 0, 1 << 30)) }
    let maximum = headers[canonicalForm: "Cache-Control"].first { $0.lowercased().hasPrefix("max-age=") }
    let left = number(maximum?.dropFirst("max-age=".count)) - number(headers[canonicalForm: "Age"].first)
    return min(max(Duration.seconds(left), timing.minimumAge), timing.maximumAge)
  }
}

extension AppError {
  static var providerUnavailable: AppError {
    var error = AppError(
      .unavailable, "provider-unavailable", "The provider's keys are temporarily unavailable.")
    error.retryAfter = 5
    return error
  }
}
