import Foundation

extension MusterStore {
  /// The attempts after which a write that the service cannot carry out counts as refused, so that others can follow.
  private static let maximumFailures = 5
  /// Seconds for which real ids are kept: longer than any write that needs them can wait.
  private static let identityLifetime: TimeInterval = 48 * 3600
  /// Seconds to wait for another process, which holds the lock for one request.
  private static let lockPatience: TimeInterval = 60

  /// Sends pending writes, in order, until none are left.
  ///
  /// - Returns: why the rest cannot be sent now, if reading may still succeed.
  /// - Throws: ``MusterError/unreachable(_:)``, ``MusterError/loggedOut``
  func sendOutbox() async throws -> (any Error)? {
    await reloadOutbox()
    do {
      while let record = outbox.next {
        guard !isForgotten else { throw MusterError.loggedOut }
        try await send(record)
      }
      return nil
    } catch let error as MusterError {
      switch error {
      case .unreachable, .loggedOut: throw error
      case .refused, .unexpectedResponse, .tokensUnavailable: return error
      }
    } catch {
      return error
    }
  }

  private func reloadOutbox() async {
    await outbox.purge(before: timing.now().addingTimeInterval(-Self.identityLifetime))
    for record in await outbox.reload() { noteMoved(record) }
    publish()
  }

  /// Sends one write: one process at a time, and each request under the lock of its own, so that an app that is
  /// suspended while it waits holds none.
  private func send(_ record: OutboxRecord) async throws {
    let lock = FileLock(
      file: folder.file("sending.lock"), createsFolder: false, reason: "Sending changes", patience: Self.lockPatience)
    do {
      try await Sender.$actingUser.withValue(folder.user) {
        try await client.cache.caller.sender.stepwise {
          try await lock.withLock { try await self.sendOnce(record.id) }
        }
      }
    } catch let failure as FileLock.Failure {
      switch failure {
      case .file(let reason): throw StoreError.disk(reason)
      case .held: throw StoreError.locked
      case .suspended: throw CancellationError()
      }
    }
  }

  /// Sends one request. The write leaves the line if the service carries it out or refuses it.
  private func sendOnce(_ id: OutboxRecord.ID) async throws {
    guard let record = outbox.next, record.id == id else { return }
    guard await outbox.stillWaits(record) else {
      await reloadOutbox()
      if outbox.next?.id == id { throw StoreError.disk("The file of a write is gone.") }
      return
    }
    try await outbox.eraseReplaced(by: record)
    if timing.isExpired(record.createdAt) { return await refuse(record, record.expiry) }
    if outbox.lacksSubject(record) { return await refuse(record, .withoutSubject) }
    try await outbox.noteAttempt(record)
    // From here on, the write may happen at any time.
    invalidations.add(record.write.collections)
    do {
      let write = record.write.resolved(outbox.identities)
      let created = try await write.send(with: client, key: record.key)
      await outbox.move(record, to: .sent(id: created))
      noteMoved(record)
      publish()
    } catch MusterError.refused(let problem) {
      guard let reason = reason(to: problem, of: record) else { throw MusterError.refused(problem) }
      await refuse(record, reason)
    }
  }

  /// Why a write will not happen; nil if it may be sent again. Limits on the rate of requests end by themselves;
  /// others, such as that on friend requests, may last for days and would hold up the line.
  private func reason(to problem: Problem, of record: OutboxRecord) -> RefusedWrite.Reason? {
    switch (problem.status, problem.type) {
    case (_, .rateLimited), (_, .requestRunning), (503, _), (408, _), (401, _): return nil
    // An earlier version of the app has sent it, in other words.
    case (_, .idempotencyKeyReused): return .unknown
    case (500..., _):
      failedAttempts[record.id, default: 0] += 1
      return failedAttempts[record.id, default: 0] < Self.maximumFailures ? nil : .refused(problem)
    default: return .refused(problem)
    }
  }

  private func refuse(_ record: OutboxRecord, _ reason: RefusedWrite.Reason) async {
    await outbox.move(record, to: .refused(reason))
    invalidate(record.write.collections)
  }

  /// The lists that were validated before may not show the write.
  private func noteMoved(_ record: OutboxRecord) {
    invalidations.add(record.write.collections)
    sentMarks[record.id] = invalidations.mark
  }
}
