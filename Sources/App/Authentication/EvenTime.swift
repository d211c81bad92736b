/// Hides how long the work of a request takes. A few extra milliseconds would reveal whether an account exists.
enum EvenTime {
  private static let step = Duration.milliseconds(100)

  /// Runs `body`, and returns or throws after a multiple of a tenth of a second, usually the first.
  static func run<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
    let start = ContinuousClock.now
    let result: Result<Value, any Error>
    do { result = .success(try await body()) } catch { result = .failure(error) }
    let steps = ((ContinuousClock.now - start) / step).rounded(.up)
    try? await Task.sleep(until: start + step * steps, clock: .continuous)
    return try result.get()
  }
}
