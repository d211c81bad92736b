/// A guest and the people whom they bring along. They are always in the same state.
struct Party: Sendable, Hashable {
  var status: GuestStatus
  var plusOnes = 0

  var places: Int { 1 + plusOnes }
}

extension Party {
  /// Whether a newer answer stands here than the one that another answer is based on, as the service decides.
  func supersedes(_ answer: Answer, bringing wanted: Int?, ifStatus: GuestStatus?, ifPlusOnes: Int?) -> Bool {
    if isResult(of: answer, bringing: wanted) { return false }
    if let ifPlusOnes, ifPlusOnes != plusOnes { return true }
    guard let ifStatus, ifStatus != status else { return false }
    return switch (ifStatus, status) {
    // The waiting list's own move. "Maybe" would give up a place that the user does not know of.
    case (.waitlisted, .going): answer == .maybe
    case (.pending, .invited): false
    default: true
    }
  }

  /// Whether an answer has happened already. Guests on the waiting list want to go.
  func isResult(of answer: Answer, bringing wanted: Int?) -> Bool {
    let given = status == .waitlisted ? GuestStatus.going : status
    return given.rawValue == answer.rawValue && (wanted ?? plusOnes) == plusOnes
  }
}

/// The places of an event, and what becomes of an answer. The service decides in the same way: a test compares the two
/// for all small events.
struct Places: Sendable, Hashable {
  /// Why the service refuses an answer.
  enum Refusal: Error, Hashable {
    case approvalPending, answersClosed, noRoom, noPlusOnes
    case tooManyPlusOnes(maximum: Int)
  }

  /// Nil for no limit.
  var capacity: Int?
  var maxPlusOnes = 0
  /// The places that are taken.
  var going = 0
  /// The places for which guests wait.
  var waiting = 0
  /// Whether every waiting party is larger than the whole event.
  var noWaitingPartyFits = false
  /// Whether the time to answer by has passed.
  var isPast = false

  /// A guest's party after an answer.
  ///
  /// - Parameters:
  ///   - plusOnes: nil keeps the number.
  ///   - isSetByHost: hosts may set answers after the deadline.
  func party(
    after answer: Answer, bringing plusOnes: Int? = nil, from old: Party, isSetByHost: Bool = false
  ) throws(Refusal) -> Party {
    guard old.status != .pending else { throw .approvalPending }
    let new = try party(after: answer, bringing: plusOnes, admitting: old)
    guard new == old || isSetByHost || !isPast else { throw .answersClosed }
    return new
  }

  /// A party after an answer, as far as places decide: also for a guest whom a host approves.
  func party(
    after answer: Answer, bringing plusOnes: Int? = nil, admitting old: Party
  ) throws(Refusal) -> Party {
    let isBack = old.status == .declined && answer != .declined
    // A guest who has not declined may keep what an earlier maximum allowed.
    let most = isBack ? maxPlusOnes : max(maxPlusOnes, old.plusOnes)
    if let plusOnes, plusOnes > most { throw most == 0 ? .noPlusOnes : .tooManyPlusOnes(maximum: most) }
    var new = Party(status: GuestStatus(rawValue: answer.rawValue), plusOnes: plusOnes ?? min(old.plusOnes, most))
    guard answer == .going else { return new }
    switch old.status {
    case .going:
      guard new.places <= old.places || hasRoom(for: new.places - old.places) else { throw .noRoom }
    case .waitlisted:
      guard new.places <= old.places || canEverHold(new) else { throw .noRoom }
      new.status = .waitlisted
    default:
      guard canEverHold(new) else { throw .noRoom }
      if !hasRoom(for: new.places) { new.status = .waitlisted }
    }
    return new
  }

  /// While anyone waits who could come, no place is free for others.
  private func hasRoom(for places: Int) -> Bool {
    (waiting == 0 || noWaitingPartyFits) && (capacity.map { going + places <= $0 } ?? true)
  }

  private func canEverHold(_ party: Party) -> Bool { capacity.map { party.places <= $0 } ?? true }
}

extension Places {
  /// The parties that get a place, in order: those who have waited longest, up to the first that does not fit. Parties
  /// that are larger than the whole event are skipped.
  ///
  /// - Parameter line: the waiting parties, the one that has waited longest first.
  func promoted<Guest>(from line: [(guest: Guest, party: Party)]) -> [Guest] {
    var free = capacity.map { $0 - going } ?? .max
    var promoted: [Guest] = []
    for (guest, party) in line where canEverHold(party) {
      guard party.places <= free else { break }
      free -= party.places
      promoted.append(guest)
    }
    return promoted
  }
}
