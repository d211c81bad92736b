import Foundation
import Observation

/// The writes that wait to be sent, and those that were refused.
@MainActor
@Observable
public final class Outbox {
  /// Writes that the lists show as if they had happened, in order.
  public private(set) var pending: [PendingWrite] = []
  /// Writes that did not happen, until the app dismisses them. They outlive the app.
  public private(set) var refusals: [RefusedWrite] = []

  @ObservationIgnored private(set) var records: [OutboxRecord]
  @ObservationIgnored private let files: OutboxFiles
  /// Real ids by temporary ones, for as long as this object exists.
  @ObservationIgnored private(set) var identities: [UUID: UUID] = [:]

  init(_ files: OutboxFiles) {
    self.files = files
    records = (files.read()?.records.values).map { $0.sorted(by: OutboxRecord.isBefore) } ?? []
    show()
  }

  /// Forgets a refusal that the user has seen.
  ///
  /// - Throws: ``StoreError``
  public func dismiss(_ refusal: RefusedWrite) throws {
    guard let record = records.first(where: { $0.id == refusal.id }), case .refused = record.state else { return }
    try files.remove(record)
    records.removeAll { $0.id == record.id }
    show()
  }

  /// Whether a write about an event, a request or a user is pending.
  public func isPending(_ subject: UUID) -> Bool {
    pending.contains { $0.write.subject.map { identities[$0] ?? $0 } == (identities[subject] ?? subject) }
  }

  /// The real id of an event or a request that had a temporary one; nil until it is known.
  public func realID(of temporaryID: UUID) -> UUID? { identities[temporaryID] }
}

extension Outbox {
  /// The first write that waits to be sent.
  var next: OutboxRecord? { records.first { $0.state == .waiting } }

  var unsettled: [OutboxRecord] { records.filter(\.isUnsettled) }

  /// Writes it to the disk, then shows it.
  func add(_ write: Write, at time: Date) throws -> PendingWrite {
    let sequence = max(try files.nextSequence(), (records.last?.sequence ?? 0) + 1)
    let record = OutboxRecord(id: UUID(), sequence: sequence, write: write, key: .random(), createdAt: time)
    try files.write(record)
    records.append(record)
    show()
    return PendingWrite(record)
  }

  /// Moves a record to its next state: on the disk first.
  func move(_ record: OutboxRecord, to state: OutboxRecord.State) async {
    var moved = record
    moved.state = state
    // If the disk is full, the write is sent again after a crash, with the same key.
    try? await files.replace(moved)
    guard let index = records.firstIndex(where: { $0.id == record.id }) else { return }
    records[index].state = state
    show()
  }

  /// Removes what the lists prove. A record with a temporary id stays for the writes that name it.
  func settle(_ settled: [OutboxRecord]) {
    for record in settled {
      guard let index = records.firstIndex(where: { $0.id == record.id }) else { continue }
      if let identity = record.identity {
        records[index].state = .settled(id: identity.real)
        try? files.write(records[index])
      } else {
        records.remove(at: index)
        try? files.remove(record)
      }
    }
    if !settled.isEmpty { show() }
  }

  /// Forgets identities that no write can need any more.
  func purge(before time: Date) {
    for record in records {
      guard case .settled = record.state, record.createdAt < time else { continue }
      try? files.remove(record)
      records.removeAll { $0.id == record.id }
    }
  }

  /// Whether the event or request that a write names was refused.
  func lacksSubject(_ record: OutboxRecord) -> Bool {
    records.contains { other in
      guard case .refused = other.state, let id = other.write.temporaryID else { return false }
      return other.id != record.id && id == record.write.subject
    }
  }

  /// Takes over what other processes have written to the files.
  ///
  /// - Returns: the writes that another process has moved: the lists may not show their effects yet.
  func reload() async -> [OutboxRecord] {
    let known = Set(records.map(\.id))
    guard let stored = await files.contents() else { return [] }
    var moved: [OutboxRecord] = []
    records = records.compactMap { record in
      // Records that were added while the files were read stay, and so do files that cannot be read now.
      guard known.contains(record.id), !stored.unreadable.contains(record.id) else { return record }
      let new = Self.next(record, stored: stored.records[record.id])
      if let new, new.state != record.state { moved.append(new) }
      return new
    }
    // Those that were added or removed while the files were read are not news.
    let found = known.union(records.map(\.id))
    for record in stored.records.values where !found.contains(record.id) {
      records.append(record)
      if record.state != .waiting { moved.append(record) }
    }
    records.sort(by: OutboxRecord.isBefore)
    show()
    return moved
  }

  /// A record after other processes have worked on its file; nil if nothing is left of it.
  private static func next(_ record: OutboxRecord, stored: OutboxRecord?) -> OutboxRecord? {
    guard case .waiting = record.state else {
      // The other process has seen the effect in its lists. This one has not.
      if case .sent = record.state { return record }
      return stored
    }
    var new = record
    switch stored?.state {
    case .waiting: break
    case .sent(let id): new.state = .sent(id: id)
    case .settled(let id): new.state = .sent(id: id)
    case .refused(let reason): new.state = .refused(reason)
    // Sent and seen, or refused and dismissed.
    case nil: new.state = .sent(id: nil)
    }
    return new
  }

  /// Shows nothing any more. The files are erased with their folder.
  func forget() {
    records = []
    identities = [:]
    show()
  }

  private func show() {
    for record in records { record.identity.map { identities[$0.temporary] = $0.real } }
    let pending = unsettled.map(PendingWrite.init)
    if pending != self.pending { self.pending = pending }
    let refusals = records.compactMap(RefusedWrite.init)
    if refusals != self.refusals { self.refusals = refusals }
  }
}

extension OutboxFiles {
  /// ``write(_:)``, off the main actor.
  fileprivate func replace(_ record: OutboxRecord) async throws { try write(record) }

  /// ``read()``, off the main actor.
  fileprivate func contents() async -> Contents? { read() }
}
