import Foundation

/// A write that the lists show, but that they do not prove yet.
public struct PendingWrite: Sendable, Hashable, Identifiable {
  public let id: UUID
  public let write: Write
  /// When the user made it.
  public let createdAt: Date
  /// Whether the service has carried it out. It stays pending until the lists are validated.
  public let isSent: Bool
}

extension PendingWrite {
  init(_ record: OutboxRecord) {
    let isSent = if case .sent = record.state { true } else { false }
    self.init(id: record.id, write: record.write, createdAt: record.createdAt, isSent: isSent)
  }
}
