import Foundation

/// Changes of other processes to the same files.
extension Outbox {
  /// Takes over what other processes have written to the files.
  ///
  /// - Returns: the writes that another process has moved: the lists may not show their effects yet.
  func reload() async -> [OutboxRecord] {
    let known = Set(records.map(\.id)).subtracting(unsaved)
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

  /// Whether no other process has sent or refused a write.
  func stillWaits(_ record: OutboxRecord) async -> Bool {
    // A file that cannot be read now says nothing new.
    guard let stored = await files.content(of: record) else { return await files.exists(record) }
    return stored.state == .waiting
  }

  /// A record after other processes have worked on its file; nil if nothing is left of it.
  private static func next(_ record: OutboxRecord, stored: OutboxRecord?) -> OutboxRecord? {
    guard case .waiting = record.state else {
      // The other process has seen the effect in its lists. This one has not.
      if case .sent = record.state { return record }
      return stored
    }
    var new = record
    if let stored, stored.isAttempted != false { new.isAttempted = stored.isAttempted }
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
}
