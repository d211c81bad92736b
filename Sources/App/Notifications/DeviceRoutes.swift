import HTTPServer
import Postgres

struct DeviceRoutes {
  let dependencies: Dependencies

  private var database: Database { dependencies.database }
  private var keys: SigningKeys { dependencies.refreshTokenKeys }

  @Sendable func list(_ request: Request, _ context: Context) async throws -> Response {
    let page = try request.query { $0.page() }
    let current = try context.session
    let list = try await Device.list(of: context.user, page: page, in: database)
    return .list(list.map { DeviceJSON(device: $0, current: current) })
  }

  @Sendable func register(_ request: Request, _ context: Context) async throws -> Response {
    let (me, session) = (try context.user, try context.session)
    let new = try await request.read { registration(&$0) }
    return try await dependencies.respond(to: context, at: [.user(me)]) {
      let (device, isNew, secret) = try await Device.register(new, for: me, by: session, keys: keys, in: $0)
      var response = Response.json(
        RegisteredDeviceJSON(device: device, secret: secret, current: session), status: isNew ? .created : .ok)
      if secret != nil { response.headers[.cacheControl] = "no-store" }
      return response
    }
  }

  private func registration(_ fields: inout Fields) -> Device.Registration {
    let body = Body.DeviceRegistration(&fields)
    let (platform, token) = (body.platform, body.token)
    if !fields.hasError(in: "platform") {
      if !fields.hasError(in: "token"), let objection = self.objection(to: token, of: platform) {
        fields.note("token", .badFormat, objection)
      }
      let particular: [(name: String, isGiven: Bool, platforms: [Device.Platform])] = [
        ("environment", body.environment != nil, [.ios]), ("topic", body.topic != nil, [.ios]),
        ("localizes", body.localizes, [.ios, .android]), ("rotateSecret", body.rotateSecret, [.webhook]),
      ]
      for (name, isGiven, owners) in particular
      where isGiven && !owners.contains(platform) && !fields.hasError(in: name) {
        fields.note(name, .notAllowed, "is for \(owners.map(\.rawValue).joined(separator: " and ")) only")
      }
    }
    return Device.Registration(
      platform: platform,
      // Upper and lower case hexadecimal digits are the same token.
      token: platform == .ios ? token.lowercased() : token,
      environment: platform == .ios ? body.environment ?? .production : nil, topic: body.topic, name: body.name,
      localizes: body.localizes, rotatesSecret: body.rotateSecret)
  }

  private func objection(to token: String, of platform: Device.Platform) -> String? {
    switch platform {
    case .ios:
      token.wholeMatch(of: /([0-9A-Fa-f]{2}){32,100}/) == nil ? "must be 32 to 100 bytes, hex-encoded" : nil
    case .android:
      token.wholeMatch(of: /[A-Za-z0-9_:\-]+/) == nil ? "must be an FCM registration token" : nil
    case .webhook: WebhookAddress.objection(to: token, allowsPrivate: dependencies.allowsPrivateWebhooks)
    case .log: nil
    }
  }

  @Sendable func remove(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let id: Device.ID = try context.id("id", else: .deviceNotFound)
    return try await dependencies.respond(to: context, at: [.user(me)]) {
      try await Device.remove(id, of: me, in: $0)
      return .noContent
    }
  }
}

private struct DeviceJSON: JSONWritable {
  let device: Device.Registered
  /// The caller's session.
  let current: Session.ID

  func write(to json: inout JSONWriter) {
    json.device(
      id: device.id, platform: device.platform, environment: device.environment, topic: device.topic,
      name: device.name, localizes: device.localizes, createdAt: device.createdAt,
      current: device.session == current)
  }
}

private struct RegisteredDeviceJSON: JSONWritable {
  let device: Device.Registered
  /// Shown only when it is new.
  let secret: String?
  /// The caller's session.
  let current: Session.ID

  func write(to json: inout JSONWriter) {
    json.registeredDevice(
      id: device.id, platform: device.platform, environment: device.environment, topic: device.topic,
      name: device.name, localizes: device.localizes, createdAt: device.createdAt,
      current: device.session == current, secret: secret)
  }
}

extension Fields.Rule where Value == String {
  var deviceToken: Self {
    and("must be visible ASCII characters without spaces") {
      $0.utf8.allSatisfy { (0x21...0x7e).contains($0) }
    }
  }

  /// An app's id. It becomes a header.
  var topic: Self {
    and("must be an app's id, like com.example.app") { $0.wholeMatch(of: /[A-Za-z0-9.\-]+/) != nil }
  }
}
