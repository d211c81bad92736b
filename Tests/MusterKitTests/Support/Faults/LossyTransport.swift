import Foundation
import MusterKit
import Postgres

/// Loses chosen requests and responses of another transport, and remembers the sent ones.
final class LossyTransport: Transport {
  enum Loss: Sendable, Equatable {
    /// The service does not get the request.
    case ofRequest
    /// The service carries out the request, and the client does not learn of it.
    case ofResponse
  }

  /// A request that the client sent.
  struct Sent: Sendable {
    /// Counted from 0.
    let number: Int
    let method: String
    let path: String
    let query: String?
    let headers: [String: String]
    let body: Data?
    var status: Int?
    var response: Data?
    var loss: Loss?

    var isRefresh: Bool { path.hasSuffix("/auth/refresh") }
    var isWrite: Bool { method != "GET" && !path.contains("/cache/validate/") }
    var key: String? { headers["Idempotency-Key"] }
  }

  typealias Plan = @Sendable (_ sent: Sent) -> Loss?

  private struct State {
    var plan: Plan
    /// The number of requests that were forgotten.
    var taken = 0
    var sent: [Sent] = []
  }

  private let inner: any Transport
  private let state: Lock<State>

  init(_ inner: any Transport = URLSessionTransport(), plan: @escaping Plan = { _ in nil }) {
    self.inner = inner
    state = Lock(State(plan: plan))
  }

  /// All requests so far.
  var sent: [Sent] { state.withLock { $0.sent } }
  var refreshes: [Sent] { sent.filter(\.isRefresh) }

  /// Chooses what to lose from now on.
  func plan(_ plan: @escaping Plan) {
    state.withLock { $0.plan = plan }
  }

  /// Forgets the requests so far.
  @discardableResult
  func takeSent() -> [Sent] {
    state.withLock { state in
      defer {
        state.taken += state.sent.count
        state.sent = []
      }
      return state.sent
    }
  }

  func send(_ request: TransportRequest) async throws -> TransportResponse {
    let (number, loss) = begin(request)
    if loss == .ofRequest { throw Lost() }
    let response = try await inner.send(request)
    note(number) { sent in
      sent.status = response.status
      sent.response = response.body
    }
    if loss == .ofResponse { throw Lost() }
    return response
  }

  func open(_ request: TransportRequest) async throws -> TransportStream {
    let (number, loss) = begin(request)
    if loss != nil { throw Lost() }
    let stream = try await inner.open(request)
    note(number) { $0.status = stream.status }
    return stream
  }

  private func begin(_ request: TransportRequest) -> (number: Int, loss: Loss?) {
    state.withLock { state in
      var sent = Sent(
        number: state.taken + state.sent.count, method: request.method, path: request.url.path(),
        query: request.url.query(),
        headers: request.headers, body: request.body)
      sent.loss = state.plan(sent)
      state.sent.append(sent)
      return (sent.number, sent.loss)
    }
  }

  private func note(_ number: Int, _ change: (inout Sent) -> Void) {
    state.withLock { state in
      let index = number - state.taken
      if state.sent.indices.contains(index) { change(&state.sent[index]) }
    }
  }

  /// The network's error.
  struct Lost: Error {}
}
