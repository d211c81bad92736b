import Foundation

@testable import MusterKit

/// A scripted server that also has the calls that an app makes besides its store: the login, one event, the phone's
/// token for pushes.
struct AppServer: Transport {
  let server: ScriptedServer
  /// The response to a request for one event.
  let event = Guarded<Event?>(nil)

  func send(_ request: TransportRequest) async throws -> TransportResponse {
    var response = try await server.send(request)
    guard response.status < 300, let body = try body(of: ScriptedServer.Received(request)) else { return response }
    response.status = 200
    response.headers = ["content-type": "application/json"]
    response.body = body
    return response
  }

  func open(_ request: TransportRequest) async throws -> TransportStream { try await server.open(request) }

  private func body(of request: ScriptedServer.Received) throws -> Data? {
    let encoder = JSONEncoder.muster()
    switch (request.method, request.path) {
    case ("POST", "/auth/login"):
      let ana = ScriptedServer.ana
      let user = User(
        id: ana.id, username: ana.username, displayName: ana.displayName, createdAt: ScriptedServer.noon)
      return try encoder.encode(Tokens(user: user, accessToken: "access", refreshToken: "refresh", expiresIn: 900))
    case ("PUT", "/devices"):
      let device = RegisteredDevice(id: ScriptedServer.id(9), platform: .ios, createdAt: ScriptedServer.noon)
      return try encoder.encode(device)
    case ("GET", let path) where path.hasPrefix("/events/"):
      return try event.withLock { $0 }.map { try encoder.encode($0) }
    default: return nil
    }
  }
}
