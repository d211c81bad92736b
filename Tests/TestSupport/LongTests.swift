import Foundation

/// Whether the random tests run for longer: `MUSTER_LONG_TESTS=1`.
public let testsAreLong = ProcessInfo.processInfo.environment["MUSTER_LONG_TESTS"] == "1"
