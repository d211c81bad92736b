import Foundation

@testable import MusterKit

/// The writes that phones have taken, and what became of them: each is carried out, or a refusal says that it may not
/// have been, or it is an answer that a later one has replaced.
struct WriteLedger: Sendable {
  struct Entry: Sendable {
    let id: OutboxRecord.ID
    let write: Write
    let phone: String
    /// In the order of all writes.
    let place: Int
    /// How often the service has forgotten its keys before.
    let weekend: Int
  }

  /// A value of the service, such as the title of an event.
  struct State: Codable, Hashable, Sendable {
    let field: String
    let object: String
  }

  /// A value that a write sets, and the one that its phone showed before.
  struct Replacement: Sendable {
    let state: State
    let new: String
    let seen: String?
    var isJudged = true
    var phone = ""
    /// Nil if the phone did not take the write.
    var id: OutboxRecord.ID?
  }

  private var taken: [String: Entry] = [:]
  private var refused: [OutboxRecord.ID: RefusedWrite.Reason] = [:]
  /// The keys of requests that the service has carried out.
  private var carriedOut: Set<String> = []
  /// The keys of requests that the service has refused, because there was nothing to do.
  private var notNeeded: Set<String> = []
  /// How often the service has forgotten its keys.
  private var weekends = 0
  /// In the order of the writes.
  private var replacements: [State: [Replacement]] = [:]

  mutating func take(_ pending: PendingWrite, on phone: String, replacing replaced: [Replacement]) {
    taken[pending.key.rawValue] = Entry(
      id: pending.id, write: pending.write, phone: phone, place: taken.count, weekend: weekends)
    note(replaced, on: phone, by: pending.id)
  }

  /// Notes what a write wants to set. Nil for one that the phone does not take.
  mutating func note(_ replaced: [Replacement], on phone: String, by id: OutboxRecord.ID?) {
    for var replacement in replaced {
      (replacement.phone, replacement.id) = (phone, id)
      replacements[replacement.state, default: []].append(replacement)
    }
  }

  /// The service has forgotten all keys.
  mutating func forgetKeys() { weekends += 1 }

  mutating func refuse(_ refusal: RefusedWrite) { refused[refusal.id] = refusal.reason }

  mutating func note(_ exchanges: [HTTPFaultProxy.Exchange]) {
    for exchange in exchanges {
      guard let key = exchange.key, let status = exchange.status else { continue }
      if (200..<300).contains(status) { carriedOut.insert(key) }
      if status == 404 || status == 409 { notNeeded.insert(key) }
    }
  }

  /// Whether a change is of a value that one of these writes sets.
  func knows(_ entry: StateHistory.Entry) -> Bool { replacements[entry.state] != nil }

  /// The values that a write has replaced although its user had seen an older one.
  func overwritten(in history: [StateHistory.Entry]) -> [String] {
    history.compactMap { entry in
      let writes = replacements[entry.state] ?? []
      // Guests who want to go may have to wait. Other changes are not by these writes, such as a place that became free.
      let causes = writes.indices.filter {
        writes[$0].new == entry.new || (writes[$0].new == "going" && entry.new == "waitlisted")
      }
      let isRight = causes.contains { !writes[$0].isJudged || hasSeen(entry.old, before: $0, in: writes) }
      guard !causes.isEmpty, !isRight else { return nil }
      let seen = causes.map { "\(writes[$0].phone) saw \(writes[$0].seen ?? "nothing")" }
      return "\(entry.state): \(entry.new ?? "nothing") replaced \(entry.old ?? "nothing"), but \(seen)"
    }
  }

  /// Whether a user has seen a value, or expected one that the service has made this of. Writes that were refused show
  /// until then, and what was there before them counts.
  private func hasSeen(_ value: String?, before place: Int, in writes: [Replacement]) -> Bool {
    let write = writes[place]
    if write.seen == value { return true }
    // A place became free.
    if write.seen == "waitlisted", value == "going", write.new != "maybe" { return true }
    // A host has approved the guest.
    if write.seen == "pending", value == "invited" { return true }
    let earlier = writes.indices.prefix(place).last {
      writes[$0].phone == write.phone && writes[$0].new == write.seen
    }
    guard let earlier else { return false }
    if write.seen == "going", value == "waitlisted" { return true }
    let isUndone = writes[earlier].id.map { refused[$0] != nil || isLeftOut($0) } ?? true
    return isUndone && hasSeen(value, before: earlier, in: writes)
  }

  /// Whether a phone has not sent an answer, because its user has given another one to the same event since.
  private func isLeftOut(_ id: OutboxRecord.ID) -> Bool {
    guard let (key, entry) = taken.first(where: { $0.value.id == id }), !carriedOut.contains(key),
      case .answer(_, let event, _) = entry.write
    else { return false }
    return taken.values.contains { later in
      guard later.phone == entry.phone, later.place > entry.place, case .answer(_, event, _) = later.write
      else { return false }
      return true
    }
  }

  /// Whether an answer stood already, given by the guest or a host. A phone that does not know whether its request has arrived looks
  /// first, once the service has forgotten the key.
  private func stood(_ entry: Entry, in history: [StateHistory.Entry]) -> Bool {
    guard case .answer(let answer, _, let plusOnes) = entry.write, entry.weekend < weekends,
      let state = replacements.first(where: { $0.value.contains { $0.id == entry.id } })?.key
    else { return false }
    let number = State(field: "plus_ones", object: state.object)
    let brings = plusOnes ?? 0 == 0 || history.contains { $0.state == number && $0.new == plusOnes.map(String.init) }
    return brings
      && history.contains { change in
        change.state == state && (change.new == answer.rawValue || (answer == .going && change.new == "waitlisted"))
      }
  }

  /// Whether a write has cancelled a request that was no longer there.
  private func isNotNeeded(_ write: Write, _ key: String) -> Bool {
    if case .cancelRequest = write { notNeeded.contains(key) } else { false }
  }

  /// The faults that are left once all phones have caught up.
  ///
  /// - Parameters:
  ///   - created: how many events there are with the mark of each write that created one.
  ///   - history: what the service has replaced.
  func findings(created: [String: Int], in history: [StateHistory.Entry]) -> [String] {
    taken.compactMap { key, entry in
      let reason = refused[entry.id]
      if reason == nil, !carriedOut.contains(key), !isLeftOut(entry.id), !isNotNeeded(entry.write, key),
        !stood(entry, in: history)
      {
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
