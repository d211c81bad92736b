import Foundation
import TestSupport
import Testing

@Suite
struct ProgramTests {
  @Test func `they receive signals, although the thread that started them blocks signals`() async throws {
    let sleeper = try await Program("/bin/sleep", ["60"])
    sleeper.signal(SIGTERM)
    let status = try await sleeper.exitStatus(within: .seconds(10))
    #expect(status == -SIGTERM)
  }

  @Test func `a program that ignores SIGTERM is killed`() async throws {
    let shell = try await Program("/bin/sh", ["-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"])
    try await shell.waitForOutput("deaf")
    // It blocks, so it must not run on one of Swift's cooperative threads.
    Thread.detachNewThread { shell.end() }
    let status = try await shell.exitStatus(within: .seconds(10))
    #expect(status == -SIGKILL)
  }
}
