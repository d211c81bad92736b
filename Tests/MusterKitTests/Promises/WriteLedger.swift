@testable import MusterKit

/// The writes that phones have taken, and what became of them: each is carried out, or a refusal says that it may not
/// have been.
struct WriteLedger: Sendable {
  struct Entry: Sendable {
    let id: OutboxRecord.ID
    let write: Write
    let phone: String
  }

  private var taken: [String: Entry] = [:]
  private var refused: [OutboxRecord.ID: RefusedWrite.Reason] = [:]
  /// The keys of requests that the service has carried out.
  private var carriedOut: Set<String> = []

  mutating func take(_ pending: PendingWrite, on phone: String) {
    taken[pending.key.rawValue] = Entry(id: pending.id, write: pending.write, phone: phone)
  }

  mutating func refuse(_ refusal: RefusedWrite) { refused[refusal.id] = refusal.reason }

  mutating func note(_ exchanges: [HTTPFaultProxy.Exchange]) {
    for exchange in exchanges {
      guard let key = exchange.key, let status = exchange.status, (200..<300).contains(status) else { continue }
      carriedOut.insert(key)
    }
  }

  /// The faults that are left once all phones have caught up.
  ///
  /// - Parameter created: how many events there are with the mark of each write that created one.
  func findings(created: [String: Int]) -> [String] {
    taken.compactMap { key, entry in
      let reason = refused[entry.id]
      if reason == nil, !carriedOut.contains(key) {
        return "\(entry.phone): lost without a refusal: \(entry.write)"
      }
      guard case .createEvent(let draft, _) = entry.write, let mark = draft.location?.name else { return nil }
      let count = created[mark, default: 0]
      switch reason {
      case nil where count != 1: return "\(entry.phone): created \(count) times: \(entry.write)"
      case .refused where count > 0: return "\(entry.phone): refused, but created: \(entry.write)"
      case _ where count > 1: return "\(entry.phone): created \(count) times: \(entry.write)"
      default: return nil
      }
    }
  }
}
