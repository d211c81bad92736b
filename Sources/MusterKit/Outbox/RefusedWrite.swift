import Foundation

/// A write that failed or whose outcome is unknown, and that the lists no longer show as pending. Tell the
/// user. Then dismiss it, or send it again with ``MusterStore/sendAgain(_:)``.
public struct RefusedWrite: Sendable, Hashable, Identifiable {
  /// Why a write will not happen, or may not have happened.
  public enum Reason: Codable, Sendable, Hashable {
    /// The service refused it.
    case refused(Problem)
    /// It could not be sent for 23 hours. It did not happen.
    case expired
    /// It was sent, no response arrived for 23 hours, and another attempt might make it happen twice. Perhaps it has
    /// happened: the lists show what the service has.
    case unknown
    /// It names an event or a request whose own write was refused. It did not happen.
    case withoutSubject
  }

  public let id: UUID
  public let write: Write
  /// When the user made it.
  public let createdAt: Date
  public let reason: Reason

  /// Whether it may have happened.
  public var isUnknown: Bool { reason == .unknown }
}

extension RefusedWrite {
  init?(_ record: OutboxRecord) {
    guard case .refused(let reason) = record.state else { return nil }
    self.init(id: record.id, write: record.write, createdAt: record.createdAt, reason: reason)
  }
}
