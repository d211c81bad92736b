import Postgres

/// The queues' counts, read at most every 15 s, however often they are requested.
actor RecentQueueStats {
  private static let lifetime = Duration.seconds(15)

  private var reading: (task: Task<QueueStats, any Error>, at: ContinuousClock.Instant)?

  func read(in database: Database) async throws -> QueueStats {
    if let reading, .now < reading.at + Self.lifetime { return try await reading.task.value }
    let task = Task { try await QueueStats.read(in: database) }
    reading = (task, .now)
    do {
      return try await task.value
    } catch {
      // Failures are not cached.
      if reading?.task == task { reading = nil }
      throw error
    }
  }
}
