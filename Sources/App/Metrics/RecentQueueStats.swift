import Postgres

/// The queues' counts, read at most every 15 s, however often they are requested.
actor RecentQueueStats {
  private static let lifetime = Duration.seconds(15)

  private let flight = SingleFlight<QueueStats>()
  private var recent: (stats: QueueStats, at: ContinuousClock.Instant)?

  func read(in database: Database) async throws -> QueueStats {
    if let recent, .now < recent.at + Self.lifetime { return recent.stats }
    let now = ContinuousClock.now
    let stats = try await flight.join { try await QueueStats.read(in: database) }.value
    recent = (stats, now)
    return stats
  }
}
