import Foundation

/// A write that did not happen and that the lists no longer show. Tell the user, then dismiss it.
public struct RefusedWrite: Sendable, Hashable, Identifiable {
  public enum Reason: Codable, Sendable, Hashable {
    /// The service refused it.
    case refused(Problem)
    /// It waited for 23 hours without a response, so that it might happen twice if it were sent now. Perhaps it has
    /// happened: the lists tell.
    case expired
    /// It names an event or a request whose own write was refused.
    case withoutSubject
  }

  public let id: UUID
  public let write: Write
  /// When the user made it.
  public let createdAt: Date
  public let reason: Reason
}

extension RefusedWrite {
  init?(_ record: OutboxRecord) {
    guard case .refused(let reason) = record.state else { return nil }
    self.init(id: record.id, write: record.write, createdAt: record.createdAt, reason: reason)
  }
}
