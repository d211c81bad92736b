import Foundation

extension Lists {
  mutating func acceptRequest(_ id: UUID, at time: Date) {
    guard let request = friendRequests?.first(where: { $0.id == id }) else { return }
    friendRequests?.removeAll { $0.id == id }
    addFriend(request.sender, at: time)
  }

  /// If the person has asked already, the two become friends immediately.
  mutating func sendRequest(to person: Person, id: UUID, at time: Date) {
    if let request = friendRequests?.first(where: { $0.sender.id == person.id }) {
      return acceptRequest(request.id, at: time)
    }
    guard let profile, let sent = sentFriendRequests,
      friends?.contains(where: { $0.id == person.id }) != true,
      !sent.contains(where: { $0.id == id || $0.receiver.id == person.id })
    else { return }
    let request = FriendRequest(id: id, sender: profile.person, receiver: person, createdAt: time)
    sentFriendRequests?.insert(request, at: 0)
  }

  /// The effects of a block on what the user sees.
  mutating func block(_ person: Person, at time: Date) {
    if let blocks, !blocks.contains(where: { $0.id == person.id }) {
      self.blocks?.insert(Block(user: person, since: time), at: 0)
    }
    friends?.removeAll { $0.id == person.id }
    friendRequests?.removeAll { $0.sender.id == person.id }
    sentFriendRequests?.removeAll { $0.receiver.id == person.id }
    events?.removeAll { $0.creator?.id == person.id }
    invitations?.removeAll { $0.event.creator?.id == person.id }
    notifications?.removeAll { $0.userId == person.id }
  }

  private mutating func addFriend(_ person: Person, at time: Date) {
    guard let friends, !friends.contains(where: { $0.id == person.id }) else { return }
    self.friends?.insert(Friend(user: person, since: time), at: 0)
  }
}
