import Postgres

/// Something that happens once.
final class Once: Sendable {
  private let isLeft = Lock(true)

  /// - Returns: true for the first caller only.
  func take() -> Bool {
    isLeft.withLock { isLeft in
      defer { isLeft = false }
      return isLeft
    }
  }
}
