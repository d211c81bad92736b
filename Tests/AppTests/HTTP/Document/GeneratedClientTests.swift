import Foundation
import TestSupport
import Testing

/// `Scripts/check-clients` as a real process: clients that generators of others make from the document.
@Suite struct GeneratedClientTests {
  @Test func `two generators take the whole document, and their clients work`() async throws {
    // How to reach PyPI.
    var environment = ProcessInfo.processInfo.environment.filter {
      $0.key.hasPrefix("PIP_") || $0.key.lowercased().hasSuffix("_proxy")
    }
    environment["MUSTER"] = Program.path("muster")
    let script = try await Program(
      Program.checkout.appending(path: "Scripts/check-clients").path, [], environment: environment)
    // For fetching the generators, and for a busy machine.
    let status = try await script.exitStatus(within: .seconds(400))
    #expect(status == 0, "\(script.standardOutput)\(script.standardError)")
    #expect(script.standardOutput.contains("all calls work"), "\(script.standardOutput)")
  }
}
