import Foundation

/// The outcome of one request.
enum Outcome: Sendable {
  case success(TransportResponse)
  case problem(Problem)
  /// A response that does not come from Muster: from a proxy, or from a network that wants a login of its own.
  case foreign(status: Int, detail: String, retryAfter: Int?)
  /// No response arrived. The request may have had its effect.
  case lost(String)
  /// The request did not leave the device.
  case unsent(String)

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
    self =
      switch error {
      case let error as UnsentRequest: .unsent(error.localizedDescription)
      case MusterError.unreachable(let reason): .lost(reason)
      default: .lost(error.localizedDescription)
      }
  }

  /// Seconds that the response asks to wait.
  var retryAfter: Int? {
    switch self {
    case .problem(let problem): problem.retryAfter
    case .foreign(_, _, let seconds): seconds
    case .success, .lost, .unsent: nil
    }
  }

  /// Nil for a success.
  var error: MusterError? {
    switch self {
    case .success: nil
    case .problem(let problem): .refused(problem)
    case .foreign(let status, let detail, _): .unexpectedResponse(status: status, detail: detail)
    case .lost(let reason), .unsent(let reason): .unreachable(reason)
    }
  }
}

extension Outcome {
  /// Statuses of a proxy that do not tell whether the request reached Muster.
  private static let gatewayStatuses = [408, 502, 503, 504]
  /// Problems with a wait that is the user's business.
  private static let limitsOfUsers: Set<Problem.Slug> = [
    .tooManyAttempts, .tooManyFriendRequests, .tooManyReports, .tooManyUsernames,
  ]
  /// Problems of 503 that say that nothing was changed.
  private static let withoutEffect: Set<Problem.Slug> = [
    .busy, .databaseUnavailable, .picturesUnavailable, .providerUnavailable, .stopping, .tooManyStreams,
  ]

  /// Whether the request may have had its effect. A refusal says that it had none.
  var mayHaveHappened: Bool {
    switch self {
    case .success, .lost, .foreign: true
    case .unsent: false
    case .problem(let problem):
      problem.type == .requestRunning || (problem.status >= 500 && !Self.withoutEffect.contains(problem.type))
    }
  }

  /// Whether the same request may be sent again.
  func allowsRepeat(_ repeats: APICall.Repeats) -> Bool {
    switch (self, repeats) {
    case (.success, _), (_, .never): false
    case (.lost, let repeats): repeats == .always
    case (.unsent, _): true
    case (.foreign(let status, _, _), let repeats): repeats == .always && Self.gatewayStatuses.contains(status)
    case (.problem(let problem), let repeats):
      switch problem.status {
      case 408: true
      case 409: repeats == .always && problem.type == .requestRunning
      case 429: !Self.limitsOfUsers.contains(problem.type)
      case 503: repeats == .always || Self.withoutEffect.contains(problem.type)
      default: false
      }
    }
  }
}

/// The success that a call has. Another response of 2xx comes from a proxy, or from a network that wants a login of its
/// own.
enum ExpectedResponse: Sendable {
  /// 204.
  case nothing
  /// Another status of 2xx, and a body of a media type.
  case body(type: String)

  static let json = ExpectedResponse.body(type: "application/json")
  static let eventStream = ExpectedResponse.body(type: "text/event-stream")

  /// The media types that a request accepts. Problems are also JSON.
  var mediaType: String {
    switch self {
    case .nothing: "application/json"
    case .body(let type): type
    }
  }

  func matches(_ response: TransportResponse) -> Bool {
    switch self {
    case .nothing: response.status == 204
    case .body(let type):
      (200..<300).contains(response.status) && response.status != 204 && response.mediaType == type
    }
  }
}

extension TransportResponse {
  /// The media type in lower case, without parameters.
  var mediaType: String? {
    headers["content-type"]?.split(separator: ";").first.map { $0.lowercased().filter { !$0.isWhitespace } }
  }
}
