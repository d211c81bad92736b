import Foundation
import TestSupport
import Testing

/// `Benchmarks/growth.py` as a real process.
@Suite struct GrowthTests {
  @Test func `the simulation of growth agrees with known cases, and its tables are in the guide`() async throws {
    let script = try await Program(Program.checkout.appending(path: "Benchmarks/growth.py").path, ["--check"])
    let status = try await script.exitStatus(within: .seconds(60))
    #expect(status == 0, "\(script.standardOutput)\(script.standardError)")
    #expect(script.standardOutput.contains("are correct"), "\(script.standardOutput)")
  }
}
