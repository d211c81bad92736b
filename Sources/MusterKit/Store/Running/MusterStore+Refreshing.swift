/// Passes of a store: each sends pending writes, and then validates. One runs at a time, and calls that come meanwhile
/// share the next one.
struct Passes {
  var running: Task<Void, any Error>?
  /// Has not begun.
  var next: Task<Void, any Error>?
  /// The collections that the next pass validates in addition to those that are not proved.
  var wanted: Set<CacheCollection> = []
}

extension MusterStore {
  /// Sends pending writes, and validates all lists. Resolves when the lists are proved to be what the service had after
  /// this call.
  ///
  /// - Throws: ``MusterError/unreachable(_:)`` offline: the copies stay, and ``isOffline`` is true.
  ///   ``MusterError/loggedOut`` if the session has ended. Other ``MusterError``s if the service is unavailable.
  public func refresh() async throws {
    try await catchUp(Set(CacheCollection.allCases))
  }

  /// Resolves when a pass that began after this call has succeeded.
  func catchUp(_ collections: Set<CacheCollection>) async throws {
    guard !isForgotten else { throw MusterError.loggedOut }
    passes.wanted.formUnion(collections)
    try await (passes.next ?? enqueuePass()).value
  }

  private func enqueuePass() -> Task<Void, any Error> {
    let running = passes.running
    let task = Task {
      _ = await running?.result
      passes.running = passes.next
      passes.next = nil
      let wanted = passes.wanted
      passes.wanted = []
      try await pass(wanted)
    }
    passes.next = task
    return task
  }

  private func pass(_ wanted: Set<CacheCollection>) async throws {
    await load()
    do {
      let failure = try await sendOutbox()
      let collections = wanted.union(invalidations.unproved)
      if !collections.isEmpty { try await validate(collections) }
      if let failure { throw failure }
      note(nil)
    } catch {
      note(error)
      throw error
    }
  }

  private func validate(_ collections: Set<CacheCollection>) async throws {
    let mark = invalidations.mark
    let result = await copies.validate(collections, lengths: lengths)
    guard !isForgotten else { throw MusterError.loggedOut }
    for collection in result.proved { invalidations.recordValidation(of: collection, since: mark) }
    let failed = collections.subtracting(result.proved)
    if !failed.isEmpty { invalidations.add(failed) }
    let settled = outbox.unsettled.filter(isProved)
    outbox.settle(settled)
    for record in settled { sentMarks[record.id] = nil }
    // In one step with the line above, so that no list flickers.
    take(result)
    await outbox.saveSettled(settled)
    if let error = result.error { throw error }
  }

  /// Whether the lists were validated after the service carried out a write.
  private func isProved(_ record: OutboxRecord) -> Bool {
    guard case .sent = record.state else { return false }
    let mark = sentMarks[record.id] ?? 1
    return record.write.collections.allSatisfy { invalidations.isProved($0, since: mark) }
  }

  /// Records how a pass ended.
  private func note(_ error: (any Error)?) {
    life.failures = error == nil ? 0 : life.failures + 1
    // A pass that was cut off says nothing about the service.
    if !(error is CancellationError) { lastError = error }
    let error = error as? MusterError
    life.retryAfter = error?.problem?.retryAfter
    let isUnreachable = if case .unreachable = error { true } else { false }
    if isOffline != isUnreachable { isOffline = isUnreachable }
    // Other failures say nothing about the session.
    let isEnded = error == .loggedOut || (isLoggedOut && life.failures > 0 && client.userID != folder.user)
    if isLoggedOut != isEnded { isLoggedOut = isEnded }
    if isUnreachable || isLoggedOut { invalidate(CacheCollection.allCases) }
    if isLoggedOut { stop() } else { schedule() }
  }
}
