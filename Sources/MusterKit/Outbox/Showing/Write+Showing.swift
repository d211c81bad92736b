import Foundation

extension Write {
  /// Shows this write in lists that do not have it yet. Lists that have it stay as they are, so that it may be applied
  /// to copies from before and from after its effect.
  ///
  /// - Parameter time: when the user made it.
  func apply(to lists: inout Lists, at time: Date) {
    switch self {
    case .answer(let event, let status, let plusOnes): lists.answer(event, status, plusOnes: plusOnes)
    case .acceptRequest(let id): lists.acceptRequest(id, at: time)
    case .declineRequest(let id): lists.friendRequests?.removeAll { $0.id == id }
    case .cancelRequest(let id): lists.sentFriendRequests?.removeAll { $0.id == id }
    case .sendRequest(let person, let id): lists.sendRequest(to: person, id: id, at: time)
    case .endFriendship(let user): lists.friends?.removeAll { $0.id == user }
    case .block(let person): lists.block(person, at: time)
    case .unblock(let user): lists.blocks?.removeAll { $0.id == user }
    case .createEvent(let draft, let id): lists.createEvent(draft, id: id, at: time)
    case .editEvent(let id, let edit, _): lists.editEvent(id, edit, at: time)
    case .cancelEvent(let id, _): lists.cancelEvent(id)
    // Lists show counts only, and the service alone knows who is a guest already.
    case .invite, .withdraw: break
    case .markRead(let ids), .markAllRead(_, let ids): lists.markRead(Set(ids), at: time)
    case .editProfile(let edit): lists.profile?.apply(edit)
    case .setPreferences(let new): lists.notificationPreferences?.choices.merge(new.choices) { $1 }
    }
  }
}

extension Lists {
  fileprivate mutating func markRead(_ ids: Set<UUID>, at time: Date) {
    for index in (notifications ?? []).indices {
      guard let item = notifications?[index], item.readAt == nil, ids.contains(item.id) else { continue }
      notifications?[index].readAt = time
    }
  }
}

extension User {
  fileprivate mutating func apply(_ edit: ProfileEdit) {
    if let username = edit.username { self.username = username }
    if let displayName = edit.displayName { self.displayName = displayName }
    edit.bio.apply(to: &bio)
    if let requestsFrom = edit.requestsFrom { self.requestsFrom = requestsFrom }
    if let findableBy = edit.findableBy { self.findableBy = findableBy }
  }
}

extension Edit {
  func apply(to value: inout Value?) {
    switch self {
    case .keep: break
    case .set(let new): value = new
    case .clear: value = nil
    }
  }
}
