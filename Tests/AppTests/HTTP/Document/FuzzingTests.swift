import Foundation
import TestSupport
import Testing

/// `Scripts/fuzz-api` as a real process.
@Suite struct FuzzingTests {
  private static let seconds = testsAreLong ? 1800 : 60
  /// For fetching Schemathesis, starting the service, and the last requests.
  private static let extraSeconds = 300

  @Test func `random requests get no response that the document does not allow`() async throws {
    // How to reach PyPI.
    var environment = ProcessInfo.processInfo.environment.filter {
      $0.key.hasPrefix("PIP_") || $0.key.lowercased().hasSuffix("_proxy")
    }
    environment["MUSTER"] = Program.path("muster")
    // The short run begins with the same choices each time, so that a failure is likely to be due to a change. A long
    // run makes others.
    if !testsAreLong { environment["FUZZ_SEED"] = "20261123" }
    let fuzzing = try await Program(
      Program.checkout.appending(path: "Scripts/fuzz-api").path, ["--seconds", String(Self.seconds)],
      environment: environment)
    // Its service must not outlive the test.
    defer { fuzzing.signal(SIGTERM) }
    let status = try await fuzzing.exitStatus(within: .seconds(Self.seconds + Self.extraSeconds))
    #expect(status == 0, "\(fuzzing.standardOutput)\(fuzzing.standardError)")
  }
}
