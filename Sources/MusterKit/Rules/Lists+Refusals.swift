import Foundation

extension Lists {
  /// Why the service refuses a write, as far as these lists tell.
  ///
  /// - Parameter time: when the user made it.
  func refusal(of write: Write, at time: Date) -> Problem? {
    do {
      try check(write, at: time)
      return nil
    } catch {
      return error
    }
  }

  private func check(_ write: Write, at time: Date) throws(Problem) {
    switch write {
    case .answer(let answer, let id, let plusOnes): _ = try party(after: answer, bringing: plusOnes, at: id, time)
    case .acceptRequest(let id): try checkRequest(id, in: friendRequests, closesAs: .accepted)
    case .declineRequest(let id): try checkRequest(id, in: friendRequests, closesAs: .declined)
    case .cancelRequest(let id): try checkRequest(id, in: sentFriendRequests, closesAs: .cancelled)
    case .sendRequest(let person, _): try checkRequest(to: person.id)
    case .endFriendship(let user): try checkIsSeen(user)
    case .block(let person):
      if person.id == profile?.id { throw .invalid("userId", .notAllowed, "must be another user") }
    case .createEvent(let draft, _):
      try checkTimes(draft.startTime, draft.endTime, draft.answerBy)
      try checkAreFriends(draft.inviteeIds, at: nil, field: "inviteeIds")
    case .editEvent(let id, let edit, let version): try check(edit, of: id, ifVersion: version)
    case .cancelEvent(let id, let version): try checkCancelling(id, ifVersion: version)
    case .invite(let users, let id):
      try checkIsOpen(try hostedEvent(id))
      try checkAreFriends(users, at: id, field: "userIds")
    case .withdraw(let guest, let id):
      let event = try hostedEvent(id)
      // Without the guest, the call changes nothing.
      if guests(of: id)?.items.contains(where: { $0.id == guest }) != false { try checkIsOpen(event) }
    case .setAnswer(let answer, let guest, let id): _ = try party(of: guest.id, after: answer, at: id, time)
    case .approve(let guest, let id): _ = try party(ofApproved: guest.id, at: id, time)
    case .addHost(let user, let id): try checkOffer(to: user, at: id)
    case .removeHost(let user, let id): try checkRemoving(host: user, from: id)
    case .report(let subject, _, _, _): try check(subject)
    case .editProfile(let edit): try check(edit)
    case .unblock, .markRead, .markAllRead, .setPicture, .removePicture, .setPreferences: break
    }
  }

  // MARK: Events

  /// An event that the user hosts or is a guest of.
  func event(_ id: Event.ID) throws(Problem) -> Event {
    let live = events?.first { $0.id == id } ?? invitations?.first { $0.event.id == id }?.event
    guard let event = live ?? surroundings?.past.first(where: { $0.id == id }) else { throw .missing(.eventNotFound) }
    return event
  }

  func hostedEvent(_ id: Event.ID) throws(Problem) -> Event {
    let event = try event(id)
    guard event.myRole != .guest else { throw .refused(.notAHost, 403, "Only the hosts of the event may do this.") }
    return event
  }

  func ownEvent(_ id: Event.ID) throws(Problem) -> Event {
    let event = try event(id)
    guard event.myRole == .creator else {
      throw .refused(.notTheCreator, 403, "Only the creator of the event may do this.")
    }
    return event
  }

  /// Whether the user has created the event with this id, which the user's client has made.
  func isCreated(_ id: Event.ID) throws(Problem) -> Bool {
    guard let event = try? event(id) else { return false }
    guard event.myRole == .creator else { throw .idTaken }
    return true
  }

  func checkIsOpen(_ event: Event) throws(Problem) {
    if event.status == .cancelled {
      throw .refused(.eventCancelled, 409, "The event is cancelled and can no longer change.")
    }
    if surroundings?.past.contains(where: { $0.id == event.id }) == true {
      throw .refused(.eventArchived, 409, "The event is over and can no longer change.")
    }
  }

  /// The party that results from the user's answer.
  func party(
    after answer: Answer, bringing plusOnes: Int?, at id: Event.ID, _ time: Date
  ) throws(Problem) -> Party {
    let event = try event(id)
    guard event.myRole == .guest else {
      throw .refused(.ownEvent, 409, "You are a host of this event, not a guest.")
    }
    try checkIsOpen(event)
    do {
      return try places(of: event, time).party(after: answer, bringing: plusOnes, from: event.myParty)
    } catch {
      throw error.problem
    }
  }

  /// Refuses an answer because of a newer one. Closed events, and guests who wait for approval, have other reasons.
  func refuse(_ newer: Party, at event: Event) throws(Problem) {
    try checkIsOpen(event)
    guard newer.status != .pending else { throw Places.Refusal.approvalPending.problem }
    var problem = Problem.refused(.superseded, 409, "There is a newer answer.")
    problem.current = CurrentAnswer(status: newer.status, plusOnes: newer.plusOnes)
    throw problem
  }

  /// The places of an event, as far as the lists tell.
  func places(of event: Event, _ time: Date) -> Places {
    var places = event.places(at: time)
    if let (guests, isWhole) = guests(of: event.id), isWhole {
      let waiting = guests.filter { $0.status == .waitlisted }
      places.noWaitingPartyFits =
        !waiting.isEmpty && waiting.allSatisfy { guest in event.capacity.map { guest.plusOnes >= $0 } ?? false }
    }
    return places
  }

  func checkTimes(_ start: Date, _ end: Date?, _ answerBy: Date?) throws(Problem) {
    var errors: [FieldProblem] = []
    if let end, end <= start { errors.append(FieldProblem("endTime", .outOfRange, "must be after startTime")) }
    if let answerBy, answerBy > start {
      errors.append(FieldProblem("answerBy", .outOfRange, "must not be after startTime"))
    }
    if !errors.isEmpty { throw .invalid(errors) }
  }

  private func check(_ edit: EventEdit, of id: Event.ID, ifVersion version: Int?) throws(Problem) {
    let event = try hostedEvent(id)
    try checkIsOpen(event)
    // An edit that has happened already may be repeated, whatever it is based on.
    var edited = event
    edited.apply(edit)
    guard edited != event else { return }
    if let version, version != event.version { throw .lostUpdate }
    let start = edit.startTime ?? event.startTime
    try checkTimes(start, edit.endTime.applied(to: event.endTime), nil)
    try checkTimes(start, nil, edit.answerBy.applied(to: event.answerBy))
  }

  private func checkCancelling(_ id: Event.ID, ifVersion version: Int?) throws(Problem) {
    let event = try ownEvent(id)
    guard event.status != .cancelled else { return }
    try checkIsOpen(event)
    if let version, version != event.version { throw .lostUpdate }
  }

  /// Guests and other hosts of the event may be named again.
  private func checkAreFriends(_ users: [User.ID], at id: Event.ID?, field: String) throws(Problem) {
    guard let friends else { return }
    var known = Set(friends.map(\.id))
    if let id {
      known.formUnion(surroundings?.guests[id]?.compactMap { $0.user?.id } ?? [])
      known.formUnion(try event(id).hosts.map(\.id).filter { $0 != profile?.id })
    }
    let strangers = users.enumerated().filter { !known.contains($0.element) }
    guard strangers.isEmpty else {
      throw .invalid(strangers.map { FieldProblem("\(field)[\($0.offset)]", .notAFriend, "is not a friend") })
    }
  }

  // MARK: People

  /// Closing a request again as it is closed changes nothing.
  private func checkRequest(
    _ id: FriendRequest.ID, in list: [FriendRequest]?, closesAs status: FriendRequestStatus
  ) throws(Problem) {
    if list?.contains(where: { $0.id == id }) == true { return }
    let isSender = status == .cancelled
    guard let request = surroundings?.closed.first(where: { $0.id == id }),
      (request.sender.id == profile?.id) == isSender
    else { throw .missing(.friendRequestNotFound) }
    guard request.status == status else {
      throw .refused(.friendRequestClosed, 409, "The friend request is already \(request.status.rawValue).")
    }
  }

  /// The request that the user has sent with this id, which the user's client has made.
  func sentRequest(_ id: FriendRequest.ID) throws(Problem) -> FriendRequest? {
    let known = (sentFriendRequests ?? []) + (friendRequests ?? []) + (surroundings?.closed ?? [])
    guard let request = known.first(where: { $0.id == id }) else { return nil }
    guard request.sender.id == profile?.id else { throw .idTaken }
    return request
  }

  private func checkRequest(to user: User.ID) throws(Problem) {
    if user == profile?.id { throw .invalid("receiverId", .notAllowed, "must be another user") }
    try checkIsSeen(user)
    if friends?.contains(where: { $0.id == user }) == true {
      throw .refused(.alreadyFriends, 409, "You are already friends.")
    }
  }

  func checkIsSeen(_ user: User.ID) throws(Problem) {
    guard let people = surroundings?.people, user != profile?.id, people[user] == nil else { return }
    throw .missing(.userNotFound)
  }

  private func check(_ edit: ProfileEdit) throws(Problem) {
    guard let username = edit.username?.lowercased(), username != profile?.username.lowercased() else { return }
    if surroundings?.people.values.contains(where: { $0.username.lowercased() == username }) == true {
      throw .refused(.usernameTaken, 409, "This username is taken.")
    }
  }
}

extension Event {
  /// The user, as a guest.
  var myParty: Party { Party(status: myStatus, plusOnes: myPlusOnes) }
}

extension Problem {
  /// A refusal by the rules that the client knows.
  static func refused(_ type: Slug, _ status: Int, _ detail: String, errors: [FieldProblem] = []) -> Problem {
    Problem(type: type, title: type.rawValue, status: status, detail: detail, requestId: "preview", errors: errors)
  }

  static func missing(_ type: Slug) -> Problem { refused(type, 404, "There is no such thing.") }

  static func invalid(_ errors: [FieldProblem]) -> Problem {
    refused(.invalidFields, 422, "Some fields are invalid.", errors: errors)
  }

  static func invalid(_ field: String, _ code: FieldProblem.Code, _ message: String) -> Problem {
    invalid([FieldProblem(field, code, message)])
  }

  static let idTaken = refused(.idTaken, 409, "Something else has this id. Make a new one.")

  static let lostUpdate = refused(
    .lostUpdate, 412, "This has changed since you read it. Read it again, then retry.")
}

extension FieldProblem {
  init(_ field: String, _ code: Code, _ message: String) {
    self.init(field: field, code: code, message: message)
  }
}

extension Places.Refusal {
  var problem: Problem {
    switch self {
    case .approvalPending: .refused(.approvalPending, 409, "A host must approve the guest first.")
    case .answersClosed: .refused(.answersClosed, 409, "The deadline for answers has passed.")
    case .noRoom: .refused(.noRoom, 409, "The event has no room for that many more people.")
    case .noPlusOnes: .invalid("plusOnes", .noPlusOnes, "must be 0: this event does not allow plus-ones")
    case .tooManyPlusOnes(let maximum):
      .invalid("plusOnes", .outOfRange, "must be at most \(maximum): the event's maxPlusOnes")
    }
  }
}
