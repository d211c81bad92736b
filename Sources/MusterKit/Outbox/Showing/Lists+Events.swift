import Foundation

extension Lists {
  mutating func answer(_ id: UUID, _ answer: AnswerStatus, plusOnes: Int?) {
    changeEvent(id) { $0.answer(answer, plusOnes: plusOnes) }
    for index in (invitations ?? []).indices {
      guard let event = invitations?[index].event, event.id == id else { continue }
      invitations?[index].status = InvitationStatus(rawValue: event.myStatus.rawValue)
    }
  }

  /// Adds an event of the user's own, unless it is there.
  mutating func createEvent(_ draft: EventDraft, id: UUID, at time: Date) {
    guard let profile, let events, !events.contains(where: { $0.id == id }) else { return }
    let event = Event(
      id: id, title: draft.title, note: draft.note, startTime: draft.startTime, endTime: draft.endTime,
      timeZone: draft.timeZone, location: draft.location, capacity: draft.capacity,
      maxPlusOnes: draft.maxPlusOnes ?? 0, creator: profile.person, hosts: [profile.person], myRole: .creator,
      myStatus: .creator, answerBy: draft.answerBy, createdAt: time, updatedAt: time,
      counts: Counts(invited: Set(draft.inviteeIds).count))
    self.events?.append(event)
    sortEvents()
  }

  mutating func editEvent(_ id: UUID, _ edit: EventEdit, at time: Date) {
    changeEvent(id) { $0.apply(edit, at: time) }
    if edit.startTime != nil { sortEvents() }
  }

  mutating func cancelEvent(_ id: UUID) {
    changeEvent(id) { $0.status = .cancelled }
  }

  /// Changes an event wherever it stands.
  private mutating func changeEvent(_ id: UUID, _ change: (inout Event) -> Void) {
    for index in (events ?? []).indices where events?[index].id == id {
      events?[index].change(change)
    }
    for index in (invitations ?? []).indices where invitations?[index].event.id == id {
      invitations?[index].event.change(change)
    }
  }

  /// The order of the service: by start, then by id.
  private mutating func sortEvents() {
    events?.sort { ($0.startTime, $0.id.wire) < ($1.startTime, $1.id.wire) }
  }
}

extension Event {
  fileprivate mutating func change(_ change: (inout Event) -> Void) { change(&self) }

  /// If the event is known to have no room, the guest waits for a place, or the answer stays as it is.
  fileprivate mutating func answer(_ answer: AnswerStatus, plusOnes: Int?) {
    guard myRole == .guest, myStatus != .creator, status != .cancelled else { return }
    guard let new = outcome(of: answer, plusOnes: plusOnes) else { return }
    counts?.add(-(1 + myPlusOnes), to: myStatus)
    (myStatus, myPlusOnes) = new
    counts?.add(1 + myPlusOnes, to: myStatus)
  }

  fileprivate mutating func apply(_ edit: EventEdit, at time: Date) {
    let before = self
    if let title = edit.title { self.title = title }
    if let startTime = edit.startTime { self.startTime = startTime }
    if let timeZone = edit.timeZone { self.timeZone = timeZone }
    if let maxPlusOnes = edit.maxPlusOnes { self.maxPlusOnes = maxPlusOnes }
    edit.note.apply(to: &note)
    edit.endTime.apply(to: &endTime)
    edit.location.apply(to: &location)
    edit.capacity.apply(to: &capacity)
    edit.answerBy.apply(to: &answerBy)
    guard self != before else { return }
    version += 1
    updatedAt = time
  }
}

extension Counts {
  fileprivate mutating func add(_ places: Int, to status: MyStatus) {
    switch status {
    case .invited: invited = max(0, invited + places)
    case .going: going = max(0, going + places)
    case .maybe: maybe = max(0, maybe + places)
    case .declined: declined = max(0, declined + places)
    case .waitlisted: waitlisted = max(0, waitlisted + places)
    case .pending: pending = max(0, pending + places)
    default: break
    }
  }
}
