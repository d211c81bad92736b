import Foundation
import MusterKit
import Observation

/// Creates an event, or changes one. Both work without a network.
@MainActor @Observable
final class EventEditor {
  var draft: EventDraft { didSet { moveEnd(from: oldValue) } }
  private let before: EventDraft
  private let original: Event?
  private let home: Home

  init(_ original: Event? = nil, in home: Home, at now: Date = .now) {
    let nextHour = (now.timeIntervalSinceReferenceDate / 3600).rounded(.down) * 3600 + 3600
    before = EventDraft(
      title: original?.title ?? "", note: original?.note,
      startTime: original?.startTime ?? Date(timeIntervalSinceReferenceDate: nextHour), endTime: original?.endTime,
      timeZone: original?.timeZone ?? .current, location: original?.location, url: original?.url,
      capacity: original?.capacity, answerBy: original?.answerBy, maxPlusOnes: original?.maxPlusOnes ?? 0)
    draft = before
    (self.original, self.home) = (original, home)
  }

  var isNew: Bool { original == nil }

  /// Friends who are not known to be guests.
  var friends: [Friend] {
    let guests = Set((original?.guests?.items ?? original?.participants ?? []).map(\.id))
    return home.store.friends.items.filter { !guests.contains(Guest.ID($0.id)) }
  }

  /// Why the draft cannot be saved, for the user. The service checks the rest.
  var problem: String? {
    if draft.title.trimmingCharacters(in: .whitespaces).isEmpty { return "Please enter a title." }
    if let end = draft.endTime, end <= draft.startTime { return "The end must be after the start." }
    if let time = draft.answerBy, time > draft.startTime { return "The deadline for answers must be before the start." }
    return nil
  }

  /// - Returns: the event, which has its id before it is sent; nil if it was not saved.
  func save() async -> Event.ID? {
    guard problem == nil else { return nil }
    guard let original else {
      let id = Event.ID()
      return await home.perform(.createEvent(draft, id: id)) ? id : nil
    }
    if edit != EventEdit(), await !home.perform(.editEvent(original.id, applying: edit)) { return nil }
    let friends = draft.inviteeIds
    if !friends.isEmpty, await !home.perform(.invite(friends, to: original.id)) { return nil }
    return original.id
  }

  /// Only what the user has changed: other hosts may have changed the rest meanwhile.
  private var edit: EventEdit {
    func change<Value: Equatable>(_ member: (EventDraft) -> Value?) -> Edit<Value> {
      let new = member(draft)
      return if new == member(before) { .keep } else if let new { .set(new) } else { .clear }
    }
    return EventEdit(
      title: draft.title == before.title ? nil : draft.title, note: change(\.note),
      startTime: draft.startTime == before.startTime ? nil : draft.startTime, endTime: change(\.endTime),
      timeZone: draft.timeZone == before.timeZone ? nil : draft.timeZone, location: change(\.location),
      capacity: change(\.capacity), answerBy: change(\.answerBy),
      maxPlusOnes: draft.maxPlusOnes == before.maxPlusOnes ? nil : draft.maxPlusOnes)
  }

  private func moveEnd(from old: EventDraft) {
    guard draft.startTime != old.startTime, draft.endTime == old.endTime, let end = draft.endTime else { return }
    draft.endTime = end.addingTimeInterval(draft.startTime.timeIntervalSince(old.startTime))
  }
}

/// The members that may be absent, as controls show them.
extension EventDraft {
  var noteText: String {
    get { note ?? "" }
    set { note = newValue.isEmpty ? nil : newValue }
  }
  var place: String {
    get { location?.name ?? "" }
    set { if newValue != place { location = newValue.isEmpty ? nil : Location(name: newValue) } }
  }
  var places: Int {
    get { capacity ?? 0 }
    set { capacity = newValue > 0 ? newValue : nil }
  }
  var hasEnd: Bool {
    get { endTime != nil }
    set { endTime = newValue ? startTime.addingTimeInterval(7200) : nil }
  }
  var hasDeadline: Bool {
    get { answerBy != nil }
    set { answerBy = newValue ? startTime : nil }
  }
  subscript(invites friend: User.ID) -> Bool {
    get { inviteeIds.contains(friend) }
    set { inviteeIds = inviteeIds.filter { $0 != friend } + (newValue ? [friend] : []) }
  }
}
