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
    case let failure as Failure: self.init(failure.status, failure.description)
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

  private init(_ status: ProgramExit, _ text: String) {
    self.status = status
    line = text.safeLines.joined(separator: "\n")
    document = .object(["type": .string(status.slug), "detail": .string(text)])
  }
}
