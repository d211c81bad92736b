import Foundation
import TestSupport
import Testing

@Suite("Programs that tests run")
struct ProgramTests {
  @Test("They hear signals, although the thread that started them does not")
  func signals() async throws {
    let sleeper = try await Program("/bin/sleep", ["60"])
    sleeper.signal(SIGTERM)
    let status = try await sleeper.exitStatus(within: .seconds(10))
    #expect(status == -SIGTERM)
  }

  @Test("One that does not end when it is asked to is ended by force")
  func deaf() async throws {
    let shell = try await Program("/bin/sh", ["-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"])
    try await shell.waitForOutput("deaf")
    // Blocks, which is nothing for a thread of Swift's.
    Thread.detachNewThread { shell.end() }
    let status = try await shell.exitStatus(within: .seconds(10))
    #expect(status == -SIGKILL)
  }
}
