import Foundation

/// The tokens in use.
///
/// However many calls need new tokens, one task refreshes them; across processes, the store's lock sees to that.
///
/// **The refresh token that is sent is always the one in the store.** So if a response is lost, or if its tokens cannot
/// be saved, or if the process ends in between, the service has issued a successor that is never used, and takes the
/// stored token once more.
final class Credentials: Sendable {
  private struct RunningRefresh {
    /// The refresh token that is no longer to be used.
    let rejected: String
    let task: Task<StoredTokens, any Error>
  }

  private struct State {
    var tokens: StoredTokens?
    var refresh: RunningRefresh?
  }

  /// Seconds without any progress.
  private static let refreshTimeout = 15.0

  private let store: any TokenStore
  private let sender: Sender
  private let state = Guarded(State())
  /// Waits more cheaply than the store's lock, for tasks of this process.
  private let turns = AsyncLock()

  init(_ store: any TokenStore, _ sender: Sender) {
    self.store = store
    self.sender = sender
  }

  // MARK: Reading

  /// The tokens, fresh or not.
  ///
  /// - Returns: nil if the user is logged out.
  /// - Throws: ``MusterError/tokensUnavailable(_:)``
  func stored() throws -> StoredTokens? {
    try state.withLock { state in
      // Read while the lock is held: tokens that a logout removes meanwhile would come back.
      if state.tokens == nil { state.tokens = try load() }
      return state.tokens
    }
  }

  /// The tokens. They are refreshed first if they have expired by the device's clock. That saves a request; a clock
  /// that is wrong costs one.
  ///
  /// - Throws: ``MusterError/loggedOut`` if there are none; what a refresh throws
  func current() async throws -> StoredTokens {
    guard let tokens = try stored() else { throw MusterError.loggedOut }
    return tokens.accessExpiresAt > Date() ? tokens : try await refresh(tokens)
  }

  // MARK: Refreshing

  /// Gets others in place of tokens that the service no longer takes.
  ///
  /// - Throws: ``MusterError/loggedOut`` if the session has ended. All other errors leave the user logged in.
  @discardableResult
  func refresh(_ rejected: StoredTokens) async throws -> StoredTokens {
    let task = state.withLock { state -> Task<StoredTokens, any Error> in
      if let running = state.refresh, running.rejected == rejected.refreshToken { return running.task }
      if let tokens = state.tokens, tokens.accessToken != rejected.accessToken { return Task { tokens } }
      let task = Task {
        defer { self.endRefresh(rejected) }
        // The lock is held for one request at a time, never while a repeat waits.
        return try await self.sender.stepwise { try await self.exclusively { try await self.exchange(rejected) } }
      }
      state.refresh = RunningRefresh(rejected: rejected.refreshToken, task: task)
      return task
    }
    do {
      return try await Wait.value(of: task)
    } catch is CancellationError {
      try Task.checkCancellation()
      // Logging out has cancelled the refresh.
      throw MusterError.loggedOut
    }
  }

  private func endRefresh(_ rejected: StoredTokens) {
    state.withLock { state in
      if state.refresh?.rejected == rejected.refreshToken { state.refresh = nil }
    }
  }

  private func exchange(_ rejected: StoredTokens) async throws -> StoredTokens {
    guard let stored = try load() else { throw forget() }
    guard stored.refreshToken == rejected.refreshToken else { return remember(stored) }
    var call = try APICall.write(.refresh, Refresh(refreshToken: stored.refreshToken), key: nil)
    call.repeats = .always
    call.timeout = Self.refreshTimeout
    let tokens: Tokens
    do {
      tokens = try await sender.get(call, nil)
    } catch MusterError.refused(let problem) where problem.endsSession {
      throw forget(stored)
    }
    return try keep(StoredTokens(tokens), after: stored)
  }

  /// Saves new tokens before anything uses them.
  private func keep(_ tokens: StoredTokens, after stored: StoredTokens) throws -> StoredTokens {
    let found: StoredTokens?
    do {
      found = try store.load()
      if found == stored { try store.save(tokens) }
    } catch {
      var unsaved = tokens
      unsaved.refreshToken = stored.refreshToken
      return remember(unsaved)
    }
    // Another process may have logged out, or in, without the lock.
    guard let found else { throw forget() }
    return remember(found == stored ? tokens : found)
  }

  // MARK: Logging in and out

  /// Saves the tokens of a login.
  ///
  /// - Throws: ``MusterError/tokensUnavailable(_:)`` if they cannot be saved
  func adopt(_ tokens: Tokens) async throws {
    let tokens = StoredTokens(tokens)
    // Cancelled or not: a session without tokens is of no use.
    try await Task {
      try await exclusively {
        do {
          try self.store.save(tokens)
        } catch {
          throw MusterError.tokensUnavailable("\(error)")
        }
        self.remember(tokens)
      }
    }.value
  }

  /// Forgets tokens whose session has ended.
  ///
  /// - Throws: ``MusterError/loggedOut``, unless there are tokens of another login by now
  func end(_ rejected: StoredTokens) async throws {
    if let tokens = state.withLock({ $0.tokens }), tokens.refreshToken != rejected.refreshToken { return }
    try await exclusively {
      let stored = try self.load()
      if let stored, stored.refreshToken != rejected.refreshToken {
        self.remember(stored)
      } else {
        throw self.forget(stored)
      }
    }
  }

  /// Forgets the tokens.
  ///
  /// - Throws: ``MusterError/tokensUnavailable(_:)`` if they cannot be removed from the store
  func clear() async throws {
    state.withLock { $0.refresh }?.task.cancel()
    try await Task {
      let clear = { @Sendable in
        // From the store first: until then, a call would read them again.
        defer { self.forget() }
        do {
          try self.store.clear()
        } catch {
          throw MusterError.tokensUnavailable("\(error)")
        }
      }
      do {
        try await exclusively { try clear() }
      } catch {
        // The tokens must go even without the lock.
        try clear()
      }
    }.value
  }

  // MARK: State

  private func load() throws -> StoredTokens? {
    do {
      return try store.load()
    } catch let error as MusterError {
      throw error
    } catch {
      throw MusterError.tokensUnavailable("\(error)")
    }
  }

  @discardableResult
  private func remember(_ tokens: StoredTokens) -> StoredTokens {
    state.withLock { $0.tokens = tokens }
    return tokens
  }

  /// - Parameter ended: tokens in the store that are void.
  /// - Returns: what to throw.
  @discardableResult
  private func forget(_ ended: StoredTokens? = nil) -> MusterError {
    // If they stay, the service refuses them again.
    if let ended, ended == (try? store.load()) { try? store.clear() }
    state.withLock { $0.tokens = nil }
    return .loggedOut
  }

  private func exclusively<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) async throws -> R {
    do {
      return try await turns.withLock { try await store.withRefreshLock(body) }
    } catch let error where error is MusterError || error is CancellationError || error is Interruption {
      throw error
    } catch {
      throw MusterError.tokensUnavailable("\(error)")
    }
  }
}

extension Problem {
  /// Whether a refresh that got this response will never succeed.
  fileprivate var endsSession: Bool { status == 401 && (type == .sessionEnded || type == .invalidToken) }
}

extension StoredTokens {
  fileprivate init(_ tokens: Tokens) {
    self.init(
      accessToken: tokens.accessToken, refreshToken: tokens.refreshToken,
      accessExpiresAt: Date(timeIntervalSinceNow: TimeInterval(tokens.expiresIn)), user: tokens.user.id)
  }
}
