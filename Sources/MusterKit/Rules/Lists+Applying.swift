import Foundation

extension Write {
  /// Shows this write in lists that do not have it yet, unless the service is known to refuse it. Lists that have it
  /// stay as they are, so that it may be applied to copies from before and from after its effect.
  ///
  /// A write with bad fields is shown: the service says what is wrong with them, and a friend of the user's may be
  /// missing in an old copy.
  ///
  /// - Parameter time: when the user made it.
  func apply(to lists: inout Lists, at time: Date) {
    let refusal = lists.refusal(of: self, at: time)
    if refusal == nil || refusal?.type == .invalidFields { lists.apply(self, at: time) }
  }
}

extension Lists {
  /// Carries out a write that ``refusal(of:at:)`` does not refuse.
  mutating func apply(_ write: Write, at time: Date) {
    switch write {
    case .answer(let answer, let event, let plusOnes): self.answer(answer, to: event, plusOnes: plusOnes, at: time)
    case .acceptRequest(let id): acceptRequest(id, at: time)
    case .declineRequest(let id): closeRequest(id, as: .declined)
    case .cancelRequest(let id): closeRequest(id, as: .cancelled)
    case .sendRequest(let person, let id): sendRequest(to: person, id: id, at: time)
    case .endFriendship(let user): endFriendship(with: user)
    case .block(let person): block(person, at: time)
    case .unblock(let user): unblock(user)
    case .createEvent(let draft, let id): createEvent(draft, id: id, at: time)
    case .editEvent(let id, let edit, _): editEvent(id, edit, at: time)
    case .cancelEvent(let id, _): cancelEvent(id, at: time)
    case .invite(let users, let event): invite(users, to: event)
    case .withdraw(let guest, let event): withdraw(guest, from: event, at: time)
    case .setAnswer(let answer, let guest, let event): setAnswer(answer, of: guest.id, at: event, time)
    case .approve(let guest, let event): approve(guest.id, at: event, time)
    case .removeHost(let user, let event): removeHost(user, from: event)
    // An offer changes nothing that its sender sees, and a report nothing that anyone sees.
    case .addHost, .report: break
    case .markRead(let ids), .markAllRead(_, let ids): markRead(Set(ids), at: time)
    case .editProfile(let edit): editProfile(edit)
    case .setPicture(let picture): showPicture(picture.file)
    case .removePicture: showPicture(nil)
    case .setPreferences(let new): notificationPreferences?.choices.merge(new.choices) { $1 }
    }
  }

  private mutating func markRead(_ ids: Set<InboxItem.ID>, at time: Date) {
    for index in (notifications ?? []).indices {
      guard let item = notifications?[index], item.readAt == nil, ids.contains(item.id) else { continue }
      notifications?[index].readAt = time
    }
  }

  private mutating func editProfile(_ edit: ProfileEdit) {
    if let username = edit.username { profile?.username = username }
    if let displayName = edit.displayName { profile?.displayName = displayName }
    let bio = edit.bio.applied(to: profile?.bio)
    profile?.bio = bio
    if let requestsFrom = edit.requestsFrom { profile?.requestsFrom = requestsFrom }
    if let findableBy = edit.findableBy { profile?.findableBy = findableBy }
    if let me = profile?.person { show(me) }
  }

  private mutating func showPicture(_ url: URL?) {
    profile?.pictureUrl = url
    if let me = profile?.person { show(me) }
  }

  /// Own events and requests show the user.
  private mutating func show(_ me: Person) {
    for event in events ?? [] where event.hosts.contains(where: { $0.id == me.id }) {
      changeEvent(event.id) { event in
        if event.creator?.id == me.id { event.creator = me }
        event.hosts = event.hosts.map { $0.id == me.id ? me : $0 }
      }
    }
    for index in (sentFriendRequests ?? []).indices { sentFriendRequests?[index].sender = me }
    for index in (friendRequests ?? []).indices { friendRequests?[index].receiver = me }
  }
}

extension Edit {
  /// The value after the edit.
  func applied(to old: Value?) -> Value? {
    switch self {
    case .keep: old
    case .set(let value): value
    case .clear: nil
    }
  }
}
