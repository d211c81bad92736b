import Foundation
import Logging
import Postgres

extension Dispatcher {
  struct Written: Sendable {
    let acknowledgements: [Acknowledgements]
    let gone: [Device]
  }

  /// Writes everything since the last write, even if the task is cancelled: otherwise it would be sent again.
  func write(_ group: inout TaskGroup<Happening>) {
    isWriting = true
    let written = Written(acknowledgements: acknowledgements, gone: gone)
    unwritten = acknowledgements
    for place in sources.indices { finished[place].formUnion(acknowledgements[place].finished) }
    acknowledgements = sources.map { _ in Acknowledgements() }
    gone = []
    let (queues, database) = (sources.map(\.queue), database)
    group.addTask {
      let writing = Task { try await written.write(queues, in: database) }
      switch await writing.result {
      case .success: return .written(written, failure: nil)
      case .failure(let error): return .written(written, failure: error)
      }
    }
  }

  func settle(_ written: Written, _ failure: (any Error)?) {
    isWriting = false
    unwritten = sources.map { _ in Acknowledgements() }
    guard let failure else {
      for place in sources.indices where !claiming.contains(place) { finished[place] = [] }
      writeFailures = 0
      return
    }
    writeFailures += 1
    logger.warning("acknowledgements cannot be written", metadata: ["error": "\(failure)"])
    // The worker that takes over these rows sends them again.
    if isCutShort {
      acknowledgements = sources.map { _ in Acknowledgements() }
      gone = []
      return
    }
    writeAt = .now + min(.seconds(2), .milliseconds(50) * (1 << min(writeFailures, 6)))
    for place in sources.indices {
      var again = written.acknowledgements[place]
      again.append(acknowledgements[place])
      acknowledgements[place] = again
    }
    gone = written.gone + gone
  }
}

extension Dispatcher.Written {
  fileprivate func write(_ queues: [LeaseQueue], in database: Database) async throws {
    // Rows of forgotten devices are deleted with them; if they were given back, they would be sent again. A device that
    // has another token by now, or was registered again, is kept.
    if !gone.isEmpty {
      let these: SQL = "SELECT * FROM unnest(\(gone.map(\.id)), \(gone.map(\.token)), \(gone.map(\.registeredAt)))"
      try await database.batch(LeaseQueue.byIndex, Device.forgetting(where: "(id, token, registered_at) IN (\(these))"))
    }
    let statements = zip(queues, acknowledgements).flatMap { $1.statements(for: $0) }
    guard !statements.isEmpty else { return }
    _ = try await database.transactionWithResults(repeating: true) { transaction in
      transaction.atCommit(LeaseQueue.byIndex)
      for statement in statements { transaction.atCommit(statement) }
    }
  }
}
