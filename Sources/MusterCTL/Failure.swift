import Foundation
import MusterKit

/// The program's message about an error, and its exit status.
struct ErrorReport {
  let status: ProgramExit
  private let line: String
  private let document: JSONValue

  /// - Parameter server: the service of the command.
  /// - Returns: nil for an error of the argument parser.
  init?(_ error: any Error, server: ServerURL?) {
    let server = server.map(\.description) ?? "the service"
    switch error {
    case MusterError.refused(let problem): self.init(problem)
    case MusterError.loggedOut:
      self.init(.notLoggedIn, "You are not logged in at \(server). Use `musterctl login`.")
    case MusterError.unreachable(let reason): self.init(.unavailable, "\(server) cannot be reached: \(reason)")
    case MusterError.unexpectedResponse(let code, let detail):
      self.init(.unavailable, "\(server) sent an unexpected response with status \(code): \(detail)")
    case MusterError.tokensUnavailable(let reason): self.init(.refused, reason)
    case let failure as Failure: self.init(failure)
    case is CancellationError: self.init(.interrupted, "interrupted")
    default: return nil
    }
  }

  /// - Parameter usage: the mistake in the command line.
  init(usage: String) { self.init(.usage, usage) }

  /// For people; or a JSON document as the service sends it for a problem.
  func text(asJSON: Bool) -> String {
    asJSON ? JSONText.of(document) : "musterctl: \(line)"
  }

  private init(_ problem: Problem) {
    status =
      switch problem.status {
      case 401 where ![.wrongCredentials, .invalidCode].contains(problem.type): .notLoggedIn
      case 500...: .unavailable
      default: .refused
      }
    line = ProblemLine.text(for: problem)
    document = ErrorReport.document(of: problem)
  }

  /// As the service sent it: without `errors` if there are none.
  private static func document(of problem: Problem) -> JSONValue {
    guard case .object(var members) = try? JSONValue(encoding: problem) else { return .null }
    if problem.errors.isEmpty { members["errors"] = nil }
    return .object(members)
  }

  private init(_ failure: Failure) {
    status = failure.status
    line = failure.description.safeLines.joined(separator: "\n")
    var members: [String: JSONValue] = ["type": .string(status.slug), "detail": .string(failure.description)]
    if !failure.candidates.isEmpty { members["candidates"] = .array(failure.candidates) }
    document = failure.problem.map { ErrorReport.document(of: $0) } ?? .object(members)
  }

  private init(_ status: ProgramExit, _ text: String) { self.init(Failure(status: status, description: text)) }
}

/// An error of the program itself, shown as one line.
struct Failure: Error, CustomStringConvertible {
  let status: ProgramExit
  let description: String
  /// The things that a name may mean, for scripts.
  var candidates: [JSONValue] = []
  /// The service's refusal that this line explains. Scripts get it unchanged.
  var problem: Problem?

  static func refused(_ description: String, candidates: [JSONValue] = []) -> Failure {
    Failure(status: .refused, description: description, candidates: candidates)
  }

  static func usage(_ description: String) -> Failure { Failure(status: .usage, description: description) }

  static let interrupted = Failure(status: .interrupted, description: "interrupted")
}

/// The program's exit statuses, for scripts. `musterctl --help` and docs/musterctl.md list the same.
enum ProgramExit: Int32, CaseIterable {
  case success = 0
  /// The service refused, or there is no such user or event.
  case refused = 1
  /// An unknown command or option, or a value that cannot be read.
  case usage = 2
  case notLoggedIn = 3
  /// No response, an unexpected one, or a problem of the service. A write may have happened.
  case unavailable = 4
  /// Ctrl-C at a question.
  case interrupted = 130

  /// The `type` of an error that is not a refusal of the service.
  var slug: String {
    switch self {
    case .success, .refused: "refused"
    case .usage: "usage"
    case .notLoggedIn: "not-logged-in"
    case .unavailable: "unavailable"
    case .interrupted: "interrupted"
    }
  }

  static let listing = """
      0  success
      1  refused by the service, or no such user or event
      2  wrong usage
      3  not logged in
      4  no response, or the service is unavailable
    130  ended by Ctrl-C at a question
    """
}
