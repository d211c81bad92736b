import Foundation

/// Whether the user can answer an invitation, and if not, why not.
public enum Answerability: Sendable, Hashable {
  /// The service takes the answer.
  case yes
  /// The service takes the answer, and puts the user on the waiting list: the event is full, or others wait already. A
  /// user who waits and now brings fewer people may get a place at once.
  case waitlist
  /// The service refuses the answer.
  case no(Reason)

  /// Why the service refuses an answer.
  public enum Reason: Sendable, Hashable {
    /// The user hosts the event.
    case hosting
    /// The event is cancelled.
    case cancelled
    /// The event ended a day ago, and is archived.
    case archived
    /// A host must approve the user first.
    case pending
    /// The deadline, ``Event/answerBy``, has passed. A host can still set the user's answer.
    case closed
    /// The event has no room for that many people.
    case noRoom
    /// Guests of the event bring no one.
    case noPlusOnes
    /// Guests of the event bring fewer people.
    case tooManyPlusOnes(maximum: Int)
  }

  /// Nil if the service takes the answer.
  public var reason: Reason? { if case .no(let reason) = self { reason } else { nil } }
}

extension Answerability.Reason {
  /// The type of the service's refusal.
  public var problemType: Problem.Slug {
    switch self {
    case .hosting: .ownEvent
    case .cancelled: .eventCancelled
    case .archived: .eventArchived
    case .pending: .approvalPending
    case .closed: .answersClosed
    case .noRoom: .noRoom
    case .noPlusOnes, .tooManyPlusOnes: .invalidFields
    }
  }

  fileprivate init(_ refusal: Places.Refusal) {
    switch refusal {
    case .approvalPending: self = .pending
    case .answersClosed: self = .closed
    case .noRoom: self = .noRoom
    case .noPlusOnes: self = .noPlusOnes
    case .tooManyPlusOnes(let maximum): self = .tooManyPlusOnes(maximum: maximum)
    }
  }
}

extension Event {
  /// Seconds for which an event stays live after its end.
  private static let timeLive: TimeInterval = 24 * 3600

  /// Whether the user can change their answer: what a screen asks to enable its buttons. The room is that for `going`.
  ///
  /// After the deadline, the same answer again is harmless, but no other one is possible: this says
  /// ``Answerability/Reason/closed``.
  ///
  /// - Parameter time: by the service's clock.
  public func canAnswer(at time: Date = .now) -> Answerability {
    if let reason = reasonAgainstAnswers(at: time) { return .no(reason) }
    if isPastAnswers(at: time) { return .no(.closed) }
    return canAnswer(.going, at: time)
  }

  /// Whether the user can do what hosts do: edit, invite, answer for guests, approve, remind and share. Only the creator
  /// also cancels the event and chooses hosts: see ``myRole``.
  ///
  /// - Parameter time: by the service's clock.
  public func canHost(at time: Date = .now) -> Bool {
    (myRole == .creator || myRole == .host) && status != .cancelled && !isArchived(at: time)
  }

  /// Whether the service takes an answer, by its rules and the members of this event. An older copy may differ from the
  /// event as it is now.
  ///
  /// An event without ``counts`` does not tell how full it is, so `yes` may become ``GuestStatus/waitlisted``.
  ///
  /// - Parameters:
  ///   - plusOnes: the number of people whom the user brings along. Nil keeps the number.
  ///   - time: by the service's clock.
  public func canAnswer(_ answer: Answer, bringing plusOnes: Int? = nil, at time: Date = .now) -> Answerability {
    if let reason = reasonAgainstAnswers(at: time) { return .no(reason) }
    do {
      let places = places(at: time)
      let party = try places.party(after: answer, bringing: plusOnes, from: myParty)
      return party.status == .waitlisted && !isAloneInLine(with: party, at: places) ? .waitlist : .yes
    } catch {
      return .no(Answerability.Reason(error))
    }
  }

  /// Why the event takes no answer of the user at all.
  private func reasonAgainstAnswers(at time: Date) -> Answerability.Reason? {
    if myRole != .guest { return .hosting }
    if status == .cancelled { return .cancelled }
    if isArchived(at: time) { return .archived }
    return myStatus == .pending ? .pending : nil
  }

  /// Whether the user waits alone, and gets a place by bringing fewer people. With others in the line, the service alone
  /// knows who comes first.
  private func isAloneInLine(with party: Party, at places: Places) -> Bool {
    guard myStatus == .waitlisted, places.waiting == myParty.places, let capacity else { return false }
    return places.going + party.places <= capacity
  }

  private func isArchived(at time: Date) -> Bool { end.addingTimeInterval(Self.timeLive) <= time }

  private func isPastAnswers(at time: Date) -> Bool { answerBy.map { $0 < time } ?? false }

  /// The places, as far as this event tells. An event without counts has room.
  func places(at time: Date) -> Places {
    let (going, waiting) = (counts?.going ?? 0, counts?.waitlisted ?? 0)
    // Parties that are larger than the whole event are not waited for. Only the service knows whether all are, but then
    // more people wait than there are places. It decides: a screen must not prevent an answer that it would take.
    let mayAllBeTooLarge = capacity.map { waiting > $0 && going < $0 } ?? false
    return Places(
      capacity: capacity, maxPlusOnes: maxPlusOnes, going: going, waiting: waiting,
      noWaitingPartyFits: mayAllBeTooLarge, isPast: isPastAnswers(at: time))
  }
}
