/// A condition that a test waited for and that did not come true.
public struct Unexpected: Error, CustomStringConvertible {
  public let description: String

  public init(_ description: String) {
    self.description = description
  }
}

/// Waits until `condition` holds. It runs where the caller does.
public nonisolated(nonsending) func eventually(
  within limit: Duration = .seconds(60), _ condition: () async throws -> Bool
) async throws {
  let deadline = ContinuousClock.now + limit
  while try await !condition() {
    guard ContinuousClock.now < deadline else { throw Unexpected("not within \(limit)") }
    try await Task.sleep(for: .milliseconds(20))
  }
}
