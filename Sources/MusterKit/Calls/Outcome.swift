import Foundation

/// The outcome of one request.
enum Outcome: Sendable {
  case success(TransportResponse)
  case problem(Problem)
  /// A response that does not come from Muster: from a proxy, or from a network that wants a login of its own.
  case foreign(status: Int, detail: String, retryAfter: Int?)
  /// No response arrived. The request may have had its effect.
  case lost(String)

  private static let shownBytes = 200

  /// - Parameter expected: the success of the call.
  init(_ response: TransportResponse, expecting expected: ExpectedResponse = .json) {
    if expected.matches(response) {
      self = .success(response)
    } else if let problem = Problem(response) {
      self = .problem(problem)
    } else {
      let target = response.headers["location"].map { "It redirects to \($0)." }
      let text = String(decoding: response.body.prefix(Self.shownBytes), as: UTF8.self)
      self = .foreign(
        status: response.status, detail: target ?? "This is not a response of Muster: \(text)",
        retryAfter: Problem.retryAfter(of: response))
    }
  }

  init(failure error: any Error) {
    if case MusterError.unreachable(let reason) = error {
      self = .lost(reason)
    } else {
      self = .lost(error.localizedDescription)
    }
  }

  /// Seconds that the response asks to wait.
  var retryAfter: Int? {
    switch self {
    case .problem(let problem): problem.retryAfter
    case .foreign(_, _, let seconds): seconds
    case .success, .lost: nil
    }
  }

  /// Nil for a success.
  var error: MusterError? {
    switch self {
    case .success: nil
    case .problem(let problem): .refused(problem)
    case .foreign(let status, let detail, _): .unexpectedResponse(status: status, detail: detail)
    case .lost(let reason): .unreachable(reason)
    }
  }
}
