import ArgumentParser
import Foundation
import MusterKit
import Testing

@testable import musterctl

@Suite struct ErrorReportTests {
  private func report(_ error: any Error) throws -> ErrorReport {
    try #require(ErrorReport(error, server: try ServerURL("https://muster.example")))
  }

  @Test func `every kind of error has its exit status`() throws {
    func refused(_ slug: Problem.Slug, _ status: Int) -> MusterError {
      .refused(Problem(type: slug, title: "", status: status))
    }
    let cases: [(any Error, ProgramExit)] = [
      (refused(.alreadyFriends, 409), .refused), (refused(.wrongCredentials, 401), .refused),
      (refused(.invalidCode, 401), .refused), (refused(.sessionEnded, 401), .notLoggedIn),
      (refused(.rateLimited, 429), .refused), (refused(.busy, 503), .unavailable),
      (MusterError.loggedOut, .notLoggedIn),
      (MusterError.unreachable("connection refused"), .unavailable),
      (MusterError.unexpectedResponse(status: 200, detail: "HTML"), .unavailable),
      (MusterError.tokensUnavailable("locked"), .refused), (Failure.usage("no"), .usage),
      (Failure.refused("no"), .refused), (Failure.interrupted, .interrupted), (CancellationError(), .interrupted),
    ]
    for (error, status) in cases { #expect(try report(error).status == status, "\(error)") }
    #expect(ErrorReport(ValidationError("no"), server: nil) == nil)
  }

  @Test func `an error is one line, or the service's document`() throws {
    let unreachable = try report(MusterError.unreachable("connection refused"))
    #expect(
      unreachable.text(asJSON: false) == "musterctl: https://muster.example cannot be reached: connection refused")
    let json = try JSONDecoder.muster().decode(JSONValue.self, from: Data(unreachable.text(asJSON: true).utf8))
    #expect(json["type"] == .string("unavailable"))
    let refused = try report(
      MusterError.refused(
        Problem(
          type: .alreadyFriends, title: "Conflict", status: 409, detail: "You are already friends.", requestId: "5f3a"))
    )
    #expect(refused.text(asJSON: false) == "musterctl: You are already friends.")
    let problem = try JSONDecoder.muster().decode(Problem.self, from: Data(refused.text(asJSON: true).utf8))
    #expect(problem.type == .alreadyFriends && problem.requestId == "5f3a")
  }

  @Test func `the help lists every exit status`() {
    for status in ProgramExit.allCases { #expect(ProgramExit.listing.contains("\(status.rawValue)  ")) }
  }
}
