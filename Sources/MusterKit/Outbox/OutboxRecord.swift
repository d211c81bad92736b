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
  let key: IdempotencyKey
  let createdAt: Date
  var state = State.waiting
  /// Whether a request with this write may have been sent. Nil in files of an earlier version, which did not note it.
  var isAttempted: Bool? = false
  /// The refused write that the user sent again as this one. This one's file hides it. It is gone before this one is
  /// sent, and so never comes back.
  var replaces: ID?

  /// The order of the line. Two processes may have taken the same place.
  static func isBefore(_ one: OutboxRecord, _ other: OutboxRecord) -> Bool {
    (one.sequence, one.id.wire) < (other.sequence, other.id.wire)
  }

  /// The reason to report once the write is too old to send.
  var expiry: RefusedWrite.Reason { isAttempted == false ? .expired : .unknown }

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
