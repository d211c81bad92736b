import Postgres

/// Turns queued notices into inbox items and deliveries.
enum FanOut {
  /// - Returns: whether there was anything to do.
  static func step(isFull: Bool, in database: Database) async throws -> Bool { false }
}
