import Foundation

/// What came of one request.
enum Outcome: Sendable {
  case success(TransportResponse)
  case problem(Problem)
  /// A response that does not come from Muster: from a proxy, or from a network that wants a login of its own.
  case foreign(status: Int, detail: String, retryAfter: Int?)
  /// No response arrived. The request may have had its effect.
  case lost(String)

  private static let shownBytes = 200

  init(_ response: TransportResponse) {
    let retryAfter = response.headers["retry-after"].flatMap(Int.init)
    let type = response.headers["content-type"]?.lowercased() ?? ""
    if (200..<300).contains(response.status), response.status == 204 || !type.contains("html") {
      self = .success(response)
    } else if response.status >= 400, var problem = try? JSONDecoder.muster().decode(Problem.self, from: response.body)
    {
      problem.status = response.status
      problem.retryAfter = retryAfter
      self = .problem(problem)
    } else {
      let target = response.headers["location"].map { "It redirects to \($0)." }
      let text = String(decoding: response.body.prefix(Self.shownBytes), as: UTF8.self)
      self = .foreign(
        status: response.status, detail: target ?? "The body is no JSON of Muster: \(text)", retryAfter: retryAfter)
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
