import Foundation

extension Lists {
  mutating func acceptRequest(_ id: FriendRequest.ID, at time: Date) {
    guard let request = friendRequests?.first(where: { $0.id == id }) else { return }
    closeRequest(id, as: .accepted)
    addFriend(request.sender, at: time)
  }

  mutating func closeRequest(_ id: FriendRequest.ID, as status: FriendRequestStatus) {
    let open = status == .cancelled ? sentFriendRequests : friendRequests
    guard var request = open?.first(where: { $0.id == id }) else { return }
    friendRequests?.removeAll { $0.id == id }
    sentFriendRequests?.removeAll { $0.id == id }
    request.status = status
    surroundings?.closed.append(request)
    for person in [request.sender.id, request.receiver.id] { surroundings?.people[person]?.friendship = .none }
  }

  /// If the person has asked already, the two become friends immediately.
  mutating func sendRequest(to person: Person, id: FriendRequest.ID, at time: Date) {
    if let request = friendRequests?.first(where: { $0.sender.id == person.id }) {
      acceptRequest(request.id, at: time)
      guard let profile else { return }
      surroundings?.closed.append(
        FriendRequest(id: id, sender: profile.person, receiver: person, status: .accepted, createdAt: time))
      return
    }
    guard let profile, let sent = sentFriendRequests,
      friends?.contains(where: { $0.id == person.id }) != true,
      !sent.contains(where: { $0.id == id || $0.receiver.id == person.id })
    else { return }
    let request = FriendRequest(id: id, sender: profile.person, receiver: person, status: .pending, createdAt: time)
    sentFriendRequests?.insert(request, at: 0)
    surroundings?.people[person.id]?.friendship = .requested
    surroundings?.recommended.removeAll { $0.id == person.id }
  }

  mutating func endFriendship(with user: User.ID) {
    guard friends?.contains(where: { $0.id == user }) == true else { return }
    friends?.removeAll { $0.id == user }
    surroundings?.people[user]?.friendship = .none
  }

  /// The effects of a block on what the user sees.
  mutating func block(_ person: Person, at time: Date) {
    if let blocks, !blocks.contains(where: { $0.id == person.id }) {
      self.blocks?.insert(Block(user: person, since: time), at: 0)
    }
    endFriendship(with: person.id)
    for request in friendRequests ?? [] where request.sender.id == person.id { closeRequest(request.id, as: .declined) }
    for request in sentFriendRequests ?? [] where request.receiver.id == person.id {
      closeRequest(request.id, as: .cancelled)
    }
    // The user leaves the other's events, and the other leaves the user's.
    events?.removeAll { $0.isPlanned(by: person.id) }
    invitations?.removeAll { $0.event.isPlanned(by: person.id) }
    for event in events ?? [] where event.myRole != .guest {
      if event.myRole == .creator { changeEvent(event.id) { $0.hosts.removeAll { $0.id == person.id } } }
      if let gone = surroundings?.guests[event.id]?.first(where: { $0.user?.id == person.id }) {
        leave([gone], from: event.id, at: time)
      }
    }
    notifications?.removeAll { $0.userId == person.id }
    surroundings?.recommended.removeAll { $0.id == person.id }
    let known = surroundings?.people.removeValue(forKey: person.id)
    surroundings?.hidden[person.id] = known
  }

  mutating func unblock(_ user: User.ID) {
    guard let person = blocks?.first(where: { $0.id == user })?.user else { return }
    blocks?.removeAll { $0.id == user }
    let known = surroundings?.hidden.removeValue(forKey: user)
    surroundings?.people[user] =
      known
      ?? PublicProfile(
        id: user, username: person.username, displayName: person.displayName, pictureUrl: person.pictureUrl,
        friendship: .none, mutualFriendCount: 0)
  }

  private mutating func addFriend(_ person: Person, at time: Date) {
    guard let friends, !friends.contains(where: { $0.id == person.id }) else { return }
    self.friends?.insert(Friend(user: person, since: time), at: 0)
    surroundings?.people[person.id]?.friendship = .friends
  }
}

extension Event {
  /// Whether a block of this user ends the other's part in the event: a guest's, or that of a creator's co-host.
  fileprivate func isPlanned(by user: User.ID) -> Bool {
    creator?.id == user || myRole == .guest && hosts.contains { $0.id == user }
  }
}
