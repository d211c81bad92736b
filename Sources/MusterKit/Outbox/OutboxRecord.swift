import Foundation

/// A write on its way, as its file has it. Each step replaces the file, so that a crash leaves the step done or not
/// done.
struct OutboxRecord: Codable, Sendable, Hashable, Identifiable {
  enum State: Codable, Sendable, Hashable {
    /// Not sent, or sent without a response.
    case waiting
    /// The service has carried it out. `id` is the real id of what it created.
    case sent(id: UUID?)
    /// The lists show its effect. Kept for the sake of later writes that name its temporary id.
    case settled(id: UUID)
    case refused(RefusedWrite.Reason)
  }

  let id: UUID
  /// Writes are sent in this order.
  var sequence: Int
  let write: Write
  /// The same for each attempt, so that the write happens once.
  var key: IdempotencyKey
  let createdAt: Date
  var state = State.waiting
  /// The service's time before the first request with this write that may have reached it without a response. Noted
  /// only if the write ``Write/needsKey``.
  var attemptedAt: Date?
  /// The refused write that the user sent again as this one. This one's file hides it. It is gone before this one is
  /// sent, and so never comes back.
  var replaces: ID?

  /// The order of the line. Two processes may have taken the same place.
  static func isBefore(_ one: OutboxRecord, _ other: OutboxRecord) -> Bool {
    (one.sequence, one.id.wire) < (other.sequence, other.id.wire)
  }

  /// Whether the lists show the write as pending.
  var isUnsettled: Bool {
    switch state {
    case .waiting, .sent: true
    case .settled, .refused: false
    }
  }

  /// The real id of what had a temporary one, as soon as it is known.
  var identity: (temporary: UUID, real: UUID)? {
    guard let temporary = write.temporaryID else { return nil }
    switch state {
    case .sent(let real?), .settled(let real): return (temporary, real)
    case .waiting, .refused, .sent(nil): return nil
    }
  }
}

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

/// A write that failed or whose outcome is unknown, and that the lists no longer show as pending. Tell the
/// user. Then dismiss it, or send it again with ``MusterStore/sendAgain(_:)``.
public struct RefusedWrite: Sendable, Hashable, Identifiable {
  /// Why a write will not happen, or may not have happened.
  public enum Reason: Codable, Sendable, Hashable {
    /// The service refused it.
    case refused(Problem)
    /// It was sent, and no response arrived within a day. Perhaps it has happened: the lists show what the service has.
    /// Another attempt might undo what another device has done since. Only writes without a state to compare with get
    /// this reason, such as a block.
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
