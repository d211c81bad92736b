import Foundation

extension Lists {
  mutating func answer(_ answer: Answer, to id: Event.ID, plusOnes: Int?, at time: Date) {
    guard let event = try? event(id), let new = try? party(after: answer, bringing: plusOnes, at: id, time),
      new != event.myParty
    else { return }
    move(me: new, at: id)
    if let me = profile?.id { changeGuest(Guest.ID(me), at: id) { $0.become(new, at: time) } }
    promoteWaiting(at: id, after: event.myParty, time)
  }

  /// Adds an event of the user's own, unless it is there.
  mutating func createEvent(_ draft: EventDraft, id: Event.ID, at time: Date) {
    var event = Event(
      id: id, title: draft.title, startTime: draft.startTime, timeZone: draft.timeZone, status: .scheduled,
      version: 1, createdAt: time, updatedAt: time, myRole: .creator, myStatus: "creator")
    event.apply(draft)
    add(event, inviting: draft.inviteeIds)
  }

  /// Adds an event whose creator the user is, unless it is there.
  mutating func add(_ event: Event, inviting users: [User.ID]) {
    guard let profile, let events, !events.contains(where: { $0.id == event.id }) else { return }
    var event = event
    (event.creator, event.hosts) = (profile.person, [profile.person])
    event.counts = Counts(invited: Set(users).count)
    self.events?.append(event)
    sortEvents()
    let guests = invited(users)
    surroundings?.guests[event.id] = guests
  }

  mutating func editEvent(_ id: Event.ID, _ edit: EventEdit, at time: Date) {
    guard let before = try? event(id) else { return }
    changeEvent(id) { $0.apply(edit, at: time) }
    if edit.startTime != nil { sortEvents() }
    guard let after = try? event(id) else { return }
    if after.capacity != before.capacity || after.end > before.end { promoteWaiting(at: id, time) }
  }

  mutating func cancelEvent(_ id: Event.ID, at time: Date) {
    guard let event = try? event(id), event.status != .cancelled else { return }
    changeEvent(id) { $0.cancel(at: time) }
  }

  /// Only if the guest list is known: lists show counts, and the service alone knows who is a guest already.
  mutating func invite(_ users: [User.ID], to id: Event.ID) {
    guard let (guests, isWhole) = guests(of: id), isWhole, let event = try? event(id) else { return }
    let present = Set(guests.compactMap(\.user?.id) + event.hosts.map(\.id))
    let new = invited(users.filter { !present.contains($0) })
    surroundings?.guests[id]?.append(contentsOf: new)
    changeEvent(id) { $0.counts?.invited += new.count }
  }

  mutating func withdraw(_ guest: Guest.ID, from id: Event.ID, at time: Date) {
    guard let gone = surroundings?.guests[id]?.first(where: { $0.id == guest }) else { return }
    leave([gone], from: id, at: time)
  }

  /// The friends with these ids, as new guests.
  private func invited(_ users: [User.ID]) -> [Guest] {
    (friends ?? []).filter { users.contains($0.id) }.map {
      Guest(id: Guest.ID($0.id), user: $0.user, name: $0.user.displayName, status: .invited)
    }
  }

  // MARK: Guests

  /// The guests of an event, as far as they are known. Nil if none are.
  func guests(of id: Event.ID) -> (items: [Guest], isWhole: Bool)? {
    surroundings?.guests[id].map { ($0, surroundings?.cut.contains(id) != true) }
  }

  /// Guests leave, and the places that become free go to those who wait.
  mutating func leave(_ gone: [Guest], from id: Event.ID, at time: Date) {
    surroundings?.guests[id]?.removeAll { guest in gone.contains { $0.id == guest.id } }
    changeEvent(id) { event in
      for guest in gone { event.counts?.add(-guest.party.places, to: guest.status) }
    }
    if gone.contains(where: { $0.status == .going || $0.status == .waitlisted }) { promoteWaiting(at: id, time) }
  }

  /// Moves a guest, who may be the user, to another state.
  mutating func move(_ guest: Guest, to new: Party, at id: Event.ID, _ time: Date) {
    if let me = profile?.id, guest.user?.id == me {
      move(me: new, at: id)
    } else {
      changeEvent(id) { $0.count(guest.party, as: new) }
    }
    changeGuest(guest.id, at: id) { $0.become(new, at: time) }
  }

  private mutating func move(me new: Party, at id: Event.ID) {
    changeEvent(id) { event in
      event.count(event.myParty, as: new)
      (event.myStatus, event.myPlusOnes) = (new.status, new.plusOnes)
    }
    if let index = invitations?.firstIndex(where: { $0.event.id == id }) { invitations?[index].status = new.status }
  }

  private mutating func changeGuest(_ guest: Guest.ID, at id: Event.ID, _ change: (inout Guest) -> Void) {
    guard let place = surroundings?.guests[id]?.firstIndex(where: { $0.id == guest }) else { return }
    if var changed = surroundings?.guests[id]?[place] {
      change(&changed)
      surroundings?.guests[id]?[place] = changed
    }
  }

  /// Gives free places to those who wait, if the party may have freed some.
  mutating func promoteWaiting(at id: Event.ID, after old: Party, _ time: Date) {
    if old.status == .going || old.status == .waitlisted { promoteWaiting(at: id, time) }
  }

  /// Gives free places to those who wait, as far as the guests are known. An event that is over promotes no one.
  private mutating func promoteWaiting(at id: Event.ID, _ time: Date) {
    // Of a part of the guests, no one can tell who moves up.
    guard surroundings?.cut.contains(id) != true else { return }
    guard let event = try? event(id), event.end > time, event.status != .cancelled else { return }
    let waiting = (surroundings?.guests[id] ?? []).filter { $0.status == .waitlisted }.sorted {
      ($0.answeredAt ?? .distantPast, $0.id.wire) < ($1.answeredAt ?? .distantPast, $1.id.wire)
    }
    for guest in places(of: event, time).promoted(from: waiting.map { ($0, $0.party) }) {
      // The time when they asked for a place stays.
      move(guest, to: Party(status: .going, plusOnes: guest.plusOnes), at: id, guest.answeredAt ?? time)
    }
  }

  // MARK: Places in the lists

  /// Changes an event wherever it stands.
  mutating func changeEvent(_ id: Event.ID, _ change: (inout Event) -> Void) {
    if let index = events?.firstIndex(where: { $0.id == id }) { events?[index].change(change) }
    if let index = invitations?.firstIndex(where: { $0.event.id == id }) { invitations?[index].event.change(change) }
  }

  /// The order of the service: by start, then by id.
  mutating func sortEvents() {
    events?.sort { one, other in
      // To write ids takes a hundred times as long as to compare times.
      one.startTime == other.startTime ? one.id.wire < other.id.wire : one.startTime < other.startTime
    }
  }
}

extension Event {
  /// Without an end, an event counts as 6 hours long.
  var end: Date { endTime ?? startTime.addingTimeInterval(6 * 3600) }

  fileprivate mutating func change(_ change: (inout Event) -> Void) { change(&self) }

  fileprivate mutating func count(_ old: Party, as new: Party) {
    counts?.add(-old.places, to: old.status)
    counts?.add(new.places, to: new.status)
  }

  fileprivate mutating func cancel(at time: Date) {
    status = .cancelled
    version += 1
    updatedAt = time
  }

  fileprivate mutating func apply(_ edit: EventEdit, at time: Date) {
    let before = self
    apply(edit)
    guard self != before else { return }
    version += 1
    updatedAt = time
  }
}

extension Guest {
  var party: Party { Party(status: status, plusOnes: plusOnes) }

  fileprivate mutating func become(_ new: Party, at time: Date) {
    // A guest who waits already keeps their place in the line.
    if status != .waitlisted || new.status != .waitlisted { answeredAt = time }
    (status, plusOnes) = (new.status, new.plusOnes)
  }
}

extension Counts {
  mutating func add(_ places: Int, to status: GuestStatus) {
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
