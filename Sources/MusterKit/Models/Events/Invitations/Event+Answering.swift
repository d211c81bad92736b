extension Event {
  /// The caller's state after an answer, by the rules of the service and the counts that are known. Nil if the service
  /// refuses it, because the caller is going and there is no room for more people.
  func outcome(of answer: AnswerStatus, plusOnes wanted: Int?) -> (status: MyStatus, plusOnes: Int)? {
    let isBack = myStatus == .declined && answer != .declined
    let plusOnes = wanted ?? (isBack ? min(myPlusOnes, maxPlusOnes) : myPlusOnes)
    guard answer == .going else { return (MyStatus(rawValue: answer.rawValue), plusOnes) }
    switch myStatus {
    case .waitlisted: return (.waitlisted, plusOnes)
    // Until a host approves.
    case .pending: return (.pending, plusOnes)
    case .going:
      let more = plusOnes - myPlusOnes
      return more <= 0 || hasRoom(for: more) ? (.going, plusOnes) : nil
    default: return (hasRoom(for: 1 + plusOnes) ? .going : .waitlisted, plusOnes)
    }
  }

  /// While anyone waits, no place is free for others. An event without counts has room as far as the caller knows.
  private func hasRoom(for places: Int) -> Bool {
    guard let counts else { return true }
    return counts.waitlisted == 0 && (capacity.map { counts.going + places <= $0 } ?? true)
  }
}
