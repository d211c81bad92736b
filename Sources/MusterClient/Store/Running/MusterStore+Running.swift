import Foundation

extension MusterStore {
  /// Keeps the lists up to date from now on: validates them, follows the stream, and sends writes, also after failures.
  /// Does nothing if the store runs already.
  ///
  /// Call ``stop()`` when the app leaves the front, and this again when it comes back.
  public func start() {
    guard !life.isRunning, !isForgotten else { return }
    life.isRunning = true
    life.failures = 0
    life.stream = Task { [client, timing, weak self] in
      while !Task.isCancelled {
        do {
          var events = client.notifications.stream()
          events.onLoss = { Task { @MainActor in self?.loseStream() } }
          for try await event in events { self?.take(event) }
        } catch MusterError.loggedOut {
          self?.endSession()
          return
        } catch {
          // Connected again below.
        }
        guard !Task.isCancelled else { return }
        self?.loseStream()
        try? await timing.sleep(timing.longestRetry)
      }
    }
    catchUpSoon(Set(CacheCollection.allCases))
  }

  /// Ends the stream and all activity of its own. ``refresh()`` still works.
  public func stop() {
    guard life.isRunning else { return }
    life.cancel()
    life = StoreLife()
    doubt(CacheCollection.allCases)
  }

  /// Begins a pass for what there is to do, if the store runs.
  func poke() { catchUpSoon([]) }

  /// Plans the next pass.
  func schedule() {
    life.timer?.cancel()
    guard life.isRunning, !isLoggedOut else { return }
    let isBehind = !doubts.open.isEmpty || outbox.next != nil
    if life.failures == 0, isBehind { return poke() }
    let delay = timing.delay(
      failures: life.failures, isStreaming: life.isStreaming, retryAfter: life.retryAfter)
    life.timer = Task { [timing, weak self] in
      guard (try? await timing.sleep(delay)) != nil else { return }
      self?.catchUpSoon(Set(CacheCollection.allCases))
    }
  }

  private func catchUpSoon(_ collections: Set<CacheCollection>) {
    guard life.isRunning else { return }
    Task { try? await catchUp(collections) }
  }

  /// Takes what the stream announces.
  func take(_ event: StreamEvent) {
    switch event {
    case .connected:
      life.isStreaming = true
      doubt(CacheCollection.allCases)
    case .notification: doubt([.notifications])
    case .changed(let stamps):
      // A copy with the announced stamp has the change.
      doubt(stamps.filter { statuses[$0.key]?.stamp != $0.value }.map(\.key))
    }
    if !doubts.open.isEmpty { poke() }
  }

  /// Changes may have been missed since the stream was lost.
  func loseStream() {
    guard life.isStreaming else { return }
    life.isStreaming = false
    doubt(CacheCollection.allCases)
    poke()
  }

  private func endSession() {
    isLoggedOut = true
    stop()
  }
}
