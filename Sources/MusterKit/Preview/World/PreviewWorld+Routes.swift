import Foundation

extension PreviewWorld {
  /// Carries out a request, wholly or not at all.
  mutating func response(to request: PreviewRequest) -> TransportResponse {
    do {
      try export.rules.check(request)
      var new = self
      let response = try new.route(request)
      new.settle()
      self = new
      return response
    } catch let problem as Problem {
      return .problem(problem)
    } catch {
      return .problem(.refused(.internalError, 500, "\(error)"))
    }
  }

  private mutating func route(_ request: PreviewRequest) throws -> TransportResponse {
    switch request.words.first {
    case "auth": return try account(request)
    case "users": return try user(request)
    case "friends", "friend-requests", "blocks": return try people(request)
    case "events": return try event(request)
    case "invitations": return try invitations(request)
    case "links":
      try lists.checkJoining(by: request.words.count > 1 ? request.words[1] : "")
      return .noContent
    case "notifications", "notification-preferences": return try inbox(request)
    case "devices": return try device(request)
    case "proposals":
      guard request.method == "GET" else { throw Problem.missing(.proposalNotFound) }
      return try list([Proposal](), request)
    case "reports": return try report(request)
    case "cache": return try validation(request)
    case "pictures": return try exported(request, else: .pictureNotFound)
    default: throw Problem.missing(.routeNotFound)
    }
  }

  /// Carries out a write, unless the rules refuse it.
  mutating func perform(_ write: Write) throws {
    if let refusal = lists.refusal(of: write, at: now) { throw refusal }
    lists.apply(write, at: now)
  }

  /// A response of the export as it is.
  func exported(_ request: PreviewRequest, else problem: Problem.Slug) throws -> TransportResponse {
    let paths = ["/api/v1" + request.path, request.path]
    guard let call = paths.compactMap({ export.call(request.method, $0) }).first else {
      throw Problem.missing(problem)
    }
    let headers = call.mediaType.map { ["content-type": $0] } ?? [:]
    return TransportResponse(status: call.status, headers: headers, body: try export.body(of: call))
  }

  /// All logins succeed, and all mails count as sent.
  private func account(_ request: PreviewRequest) throws -> TransportResponse {
    switch request.words.dropFirst().joined(separator: "/") {
    case "login", "refresh", "code/confirm": return try .json(tokens(isNew: nil))
    case "register": return try .json(tokens(isNew: nil), status: 201)
    case "apple", "google":
      guard request.method == "POST" else { return .noContent }
      return try .json(tokens(isNew: false))
    case "code", "password-reset": return try .json([String: String](), status: 202)
    case "sessions":
      let session = Session(
        id: Session.ID(me.id.rawValue), device: "Preview", createdAt: now, lastUsedAt: now, current: true)
      return try list([session], request)
    default: return .noContent
    }
  }

  private func tokens(isNew: Bool?) -> Tokens {
    Tokens(
      user: me, accessToken: "preview-access-token", refreshToken: "preview-refresh-token", expiresIn: 86_400,
      isNew: isNew)
  }

  private mutating func device(_ request: PreviewRequest) throws -> TransportResponse {
    switch (request.method, request.words.count) {
    case ("GET", 1): return try list(devices, request)
    case ("PUT", 1):
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
    default:
      let id: Device.ID = try request.id(1, else: .deviceNotFound)
      guard devices.contains(where: { $0.id == id }) else { throw Problem.missing(.deviceNotFound) }
      devices.removeAll { $0.id == id }
      return .noContent
    }
  }

  /// The same report again returns the open one.
  private mutating func report(_ request: PreviewRequest) throws -> TransportResponse {
    let body: JSONValue = try request.read()
    func id<Thing>(_ name: String) -> Identifier<Thing>? { body[name]?.string.flatMap { Identifier($0) } }
    let (user, event, guest): (User.ID?, Event.ID?, Guest.ID?) = (id("userId"), id("eventId"), id("guestId"))
    if let event { _ = try lists.event(event) }
    if let guest {
      let isShown = lists.surroundings?.guests.values.joined().contains { $0.id == guest && $0.user == nil }
      guard isShown == true else { throw Problem.missing(.guestNotFound) }
    }
    let new = Report(
      id: newID(), userId: user, eventId: event, guestId: guest,
      reason: ReportReason(rawValue: body["reason"]?.string ?? ""), text: body["text"]?.string, createdAt: now)
    let same = reports.first { ($0.userId, $0.eventId, $0.guestId) == (new.userId, new.eventId, new.guestId) }
    if let same { return try .json(same) }
    reports.append(new)
    return try .json(new, status: 201)
  }
}
