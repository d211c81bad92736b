import Foundation

extension PreviewWorld {
  /// Carries out a request.
  mutating func response(to request: PreviewRequest) -> TransportResponse {
    do {
      return try route(request)
    } catch let problem as Problem {
      return .problem(problem)
    } catch {
      return .problem(.preview(.internalError, 500, "\(error)"))
    }
  }

  private mutating func route(_ request: PreviewRequest) throws -> TransportResponse {
    let words = request.words
    switch words.first {
    case "auth": return try account(request, words)
    case "users": return try user(request, words)
    case "friends", "friend-requests", "blocks": return try people(request, words)
    case "events": return try event(request, words)
    case "invitations": return try invitations(request)
    case "notifications", "notification-preferences": return try inbox(request, words)
    case "devices": return try device(request, words)
    case "proposals":
      guard request.method == "GET" else { throw Problem.missing(.proposalNotFound) }
      return try list([Proposal](), request)
    case "reports": return try .json(report(request), status: 201)
    case "cache": return try validation(request)
    case "pictures": return try exported(request, else: .pictureNotFound)
    default: throw Problem.missing(.routeNotFound)
    }
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
  private mutating func account(_ request: PreviewRequest, _ words: [String]) throws -> TransportResponse {
    switch words.dropFirst().joined(separator: "/") {
    case "login", "register", "refresh", "code/confirm": return try .json(tokens(isNew: nil))
    case "apple", "google":
      guard request.method == "POST" else { return .noContent }
      return try .json(tokens(isNew: false))
    case "code", "password-reset": return try .json([String: String](), status: 202)
    case "sessions":
      let session = Session(id: me.id, device: "Preview", createdAt: now, lastUsedAt: now, current: true)
      return try list([session], request)
    default: return .noContent
    }
  }

  private func tokens(isNew: Bool?) -> Tokens {
    Tokens(
      user: me, accessToken: "preview-access-token", refreshToken: "preview-refresh-token", expiresIn: 86_400,
      isNew: isNew)
  }

  private mutating func device(_ request: PreviewRequest, _ words: [String]) throws -> TransportResponse {
    switch (request.method, words.count) {
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
      devices.removeAll { $0.id.wire == words.last }
      return .noContent
    }
  }

  private mutating func report(_ request: PreviewRequest) throws -> Report {
    let body: JSONValue = try request.read()
    return Report(
      id: newID(), userId: body["userId"]?.string.flatMap(UUID.init(uuidString:)),
      eventId: body["eventId"]?.string.flatMap(UUID.init(uuidString:)),
      guestId: body["guestId"]?.string.flatMap(UUID.init(uuidString:)),
      reason: ReportReason(rawValue: body["reason"]?.string ?? ""), text: body["text"]?.string, createdAt: now)
  }
}
