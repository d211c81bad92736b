import Foundation

extension MusterStore {
  /// Keeps the lists up to date from now on: validates them, follows the stream, and sends writes, even after failures.
  /// Does nothing if the store runs already.
  ///
  /// Call ``stop()`` when the app leaves the front, and this again when it comes back.
  public func start() {
    guard !life.isRunning, !isForgotten else { return }
    life.isRunning = true
    life.failures = 0
    // Earlier proofs do not count: nothing was watching for changes since.
    invalidate(CacheCollection.allCases)
    let number = life.number
    life.stream = Task { [client, timing, weak self] in
      while !Task.isCancelled {
        do {
          var events = client.notifications.stream()
          events.onLoss = { Task { @MainActor in self?.loseStream(ofLife: number) } }
          for try await event in events where self?.life.number == number { self?.take(event) }
        } catch MusterError.loggedOut {
          self?.endSession(ofLife: number)
          return
        } catch {
          // Connected again below.
        }
        guard !Task.isCancelled else { return }
        self?.loseStream(ofLife: number)
        try? await timing.sleep(timing.maximumRetry)
      }
    }
    catchUpSoon(Set(CacheCollection.allCases))
  }

  /// Ends the stream and all activity of its own. ``refresh()`` still works.
  public func stop() {
    guard life.isRunning else { return }
    life.cancel()
    life = StoreLife(number: life.number + 1)
    invalidate(CacheCollection.allCases)
  }

  /// Starts a pass for pending work, if the store runs.
  func poke() { catchUpSoon([]) }

  /// Plans the next pass.
  func schedule() {
    life.timer?.cancel()
    guard life.isRunning, !isLoggedOut else { return }
    let isBehind = !invalidations.unproved.isEmpty || outbox.next != nil
    if life.failures == 0, isBehind { return poke() }
    schedule(
      after: timing.delay(
        failures: life.failures, isStreaming: life.isStreaming, retryAfter: life.retryAfter))
  }

  private func schedule(after delay: TimeInterval) {
    life.timer?.cancel()
    guard life.isRunning else { return }
    life.timer = Task { [timing, weak self] in
      guard (try? await timing.sleep(delay)) != nil else { return }
      self?.catchUpSoon(Set(CacheCollection.allCases))
    }
  }

  private func catchUpSoon(_ collections: Set<CacheCollection>) {
    guard life.isRunning else { return }
    Task { try? await catchUp(collections) }
  }

  /// Handles an announcement of the stream.
  func take(_ event: StreamEvent) {
    switch event {
    case .connected:
      life.isStreaming = true
      invalidate(CacheCollection.allCases)
    case .notification: invalidate([.notifications])
    case .changed(let stamps):
      // A copy with the announced stamp has the change.
      invalidate(stamps.filter { statuses[$0.key]?.stamp != $0.value }.map(\.key))
    }
    // After a failure, the timer decides: the service may have asked for time. If the network failed, a new connection
    // ends the wait.
    let isWaiting = life.failures > 0 && (event != .connected || life.retryAfter != nil)
    if !invalidations.unproved.isEmpty, !isWaiting { poke() }
  }

  /// Changes may have been missed since the stream was lost.
  func loseStream() {
    guard life.isStreaming else { return }
    life.isStreaming = false
    invalidate(CacheCollection.allCases)
    // After a random pause: a service that stops loses the streams of all phones together.
    schedule(after: timing.firstRetry * (1 + timing.random()))
  }

  private func loseStream(ofLife number: Int) {
    if life.number == number { loseStream() }
  }

  /// A stream may end after the store was stopped, and started again after the next login.
  func endSession(ofLife number: Int) {
    guard life.number == number else { return }
    lastError = MusterError.loggedOut
    isLoggedOut = true
    stop()
  }
}
