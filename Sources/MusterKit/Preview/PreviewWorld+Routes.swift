import Foundation

extension PreviewWorld {
  /// Carries out a request, wholly or not at all.
  mutating func response(to request: PreviewRequest) -> TransportResponse {
    do {
      if request.path.hasPrefix("/pictures/") { return try exported(request, else: .pictureNotFound) }
      let route = try request.route()
      try export.rules.check(request, at: route)
      var new = self
      let response = try new.respond(to: request, at: route)
      new.settle()
      self = new
      return response
    } catch let problem as Problem {
      return .problem(problem)
    } catch {
      return .problem(.refused(.internalError, 500, "\(error)"))
    }
  }

  private mutating func respond(to request: PreviewRequest, at route: Route) throws -> TransportResponse {
    switch route {
    // All logins succeed, and all mails count as sent.
    case .register: return try .json(tokens(isNew: nil), status: 201)
    case .confirmCode, .login, .refresh: return try .json(tokens(isNew: nil))
    case .signInWithApple, .signInWithGoogle: return try .json(tokens(isNew: false))
    case .requestCode, .requestPasswordReset: return try .json([String: String](), status: 202)
    case .changePassword, .confirmPasswordReset, .deleteMe, .endSession, .linkApple, .linkGoogle, .logOut,
      .notifyOfAppleAccount, .undoEmailChange, .unlinkApple, .unlinkGoogle, .verifyEmail:
      return .noContent
    case .listSessions: return try list([session], request)

    case .getMe: return try .json(me)
    case .editMe: return try editMe(request)
    case .exportMe: return try .json(["profile": me])
    case .putPicture: return try putPicture(request)
    case .removePicture: return try removePicture(request)
    case .getCalendarLink: return try shownCalendarLink()
    case .makeCalendarLink: return try makeCalendarLink()
    case .revokeCalendarLink: return revokeCalendarLink()

    case .searchUsers: return try list(search(request), request)
    case .listRecommendedUsers: return try list(lists.surroundings?.recommended ?? [], request)
    case .getUser(let id): return try user(id)
    case .listFriends: return try list(.friends, request)
    case .endFriendship(let id): return try nothing(after: .endFriendship(with: id))
    case .listFriendRequests: return try listRequests(request)
    case .getFriendRequest(let id): return try shown(id)
    case .sendFriendRequest: return try sendRequest(request)
    case .acceptFriendRequest(let id): return try shown(id, after: .acceptRequest(id))
    case .declineFriendRequest(let id): return try shown(id, after: .declineRequest(id))
    case .cancelFriendRequest(let id): return try shown(id, after: .cancelRequest(id))
    case .listBlocks: return try list(.blocks, request)
    case .block(let id): return try block(id)
    case .unblock(let id): return try nothing(after: .unblock(id))
    case .report: return try report(request)

    case .listEvents: return try listEvents(request)
    case .createEvent: return try createEvent(request)
    case .getEvent(let id): return try getEvent(id, request)
    case .editEvent(let id):
      return try shown(id, after: .editEvent(id, applying: request.read(), ifVersion: version(of: id, in: request)))
    case .cancelEvent(let id): return try shown(id, after: .cancelEvent(id, ifVersion: version(of: id, in: request)))
    case .duplicateEvent(let id): return try duplicate(id, request)
    case .getEventCalendar: return try exported(request, else: .eventNotFound)
    case .addHost(let id, let user): return try addHost(user, to: id)
    case .removeHost(let id, let user): return try removeHost(user, from: id)
    case .listHostOffers(let id): return try listHostOffers(of: id, request)
    case .listGuests(let id): return try listGuests(of: id, request)
    case .inviteToEvent(let id): return try invite(to: id, request)
    case .withdrawInvitation(let id, let guest): return try shown(id, after: .withdraw(guest, from: id))
    case .answerInvitation(let id): return try answer(id, request)
    case .setAnswer(let id, let guest): return try setAnswer(of: guest, at: id, request)
    case .approveGuest(let id, let guest): return try approve(guest, at: id)
    case .remindGuests(let id): return try remindGuests(of: id)
    case .listInvitations: return try listInvitations(request)

    case .listLinks(let event): return try list(lists.links(of: event), request)
    case .createLink(let event): return try createLink(to: event, request)
    case .getLink(let event, let id): return try .json(lists.link(id, of: event))
    case .editLink(let event, let id): return try .json(lists.editLink(id, of: event, request.read(), now))
    case .revokeLink(let event, let id): return try revokeLink(id, of: event, request)
    case .joinByLink(let token): return try join(by: token)

    // No one asks ana for anything.
    case .listProposals: return try list([Proposal](), request)
    case .acceptProposal, .declineProposal: throw Problem.missing(.proposalNotFound)

    case .listNotifications: return try listNotifications(request)
    case .markNotificationsRead: return try markRead(request)
    case .getNotificationPreferences: return try .json(lists.notificationPreferences)
    case .setNotificationPreferences: return try setPreferences(request)
    case .listDevices: return try list(devices, request)
    case .registerDevice: return try registerDevice(request)
    case .removeDevice(let id): return try removeDevice(id)
    case .validateCache: return try validation(request)
    // The transport opens streams.
    case .streamNotifications: throw Problem.missing(.routeNotFound)
    }
  }

  /// Carries out a write, unless the rules refuse it.
  mutating func perform(_ write: Write) throws {
    if let refusal = lists.refusal(of: write, at: now) { throw refusal }
    lists.apply(write, at: now)
  }

  /// The same for a write that names the stamp on which it is based.
  mutating func perform(_ write: Write, basedOn collection: CacheCollection, in request: PreviewRequest) throws {
    let before = lists
    try perform(write)
    if lists != before, !request.isBased(on: stamps[collection]) { throw Problem.lostUpdate }
  }

  private mutating func nothing(after write: Write) throws -> TransportResponse {
    try perform(write)
    return .noContent
  }

  /// A response of the export as it is.
  func exported(_ request: PreviewRequest, else problem: Problem.Slug) throws -> TransportResponse {
    let paths = [Route.prefix + request.path, request.path]
    guard let call = paths.compactMap({ export.call(request.method, $0) }).first else {
      throw Problem.missing(problem)
    }
    let headers = call.mediaType.map { ["content-type": $0] } ?? [:]
    return TransportResponse(status: call.status, headers: headers, body: try export.body(of: call))
  }

  private var session: Session {
    Session(id: Session.ID(me.id.rawValue), device: "Preview", createdAt: now, lastUsedAt: now, current: true)
  }

  private func tokens(isNew: Bool?) -> Tokens {
    Tokens(
      user: me, accessToken: "preview-access-token", refreshToken: "preview-refresh-token", expiresIn: 86_400,
      isNew: isNew)
  }

  private mutating func registerDevice(_ request: PreviewRequest) throws -> TransportResponse {
    let new: DeviceRegistration = try request.read()
    let device = RegisteredDevice(
      id: newID(), platform: new.platform, environment: new.environment, topic: new.topic, name: new.name,
      localizes: new.localizes ?? false, createdAt: now, current: true)
    devices.removeAll(where: \.current)
    devices.insert(
      Device(
        id: device.id, platform: device.platform, environment: device.environment, topic: device.topic,
        name: device.name, localizes: device.localizes, createdAt: now, current: true), at: 0)
    return try .json(device, status: 201)
  }

  private mutating func removeDevice(_ id: Device.ID) throws -> TransportResponse {
    guard devices.contains(where: { $0.id == id }) else { throw Problem.missing(.deviceNotFound) }
    devices.removeAll { $0.id == id }
    return .noContent
  }

  /// The same report again returns the one that is there.
  private mutating func report(_ request: PreviewRequest) throws -> TransportResponse {
    let body: JSONValue = try request.read()
    func id<Thing>(_ name: String) -> Identifier<Thing>? { body[name]?.string.flatMap { Identifier($0) } }
    let (user, event, guest): (User.ID?, Event.ID?, Guest.ID?) = (id("userId"), id("eventId"), id("guestId"))
    let given: Report.ID? = id("id")
    if let sent = reports.first(where: { $0.id == given }) { return try .json(sent) }
    let new = Report(
      id: given ?? newID(), userId: user, eventId: event, guestId: guest,
      reason: ReportReason(rawValue: body["reason"]?.string ?? ""), text: body["text"]?.string, createdAt: now)
    let subject = user.map(Report.Subject.user) ?? event.map(Report.Subject.event) ?? guest.map(Report.Subject.guest)
    if let subject { try perform(.report(subject, reason: new.reason, text: new.text, id: new.id)) }
    let same = reports.first { ($0.userId, $0.eventId, $0.guestId) == (new.userId, new.eventId, new.guestId) }
    if let same { return try .json(same) }
    reports.append(new)
    return try .json(new, status: 201)
  }
}
