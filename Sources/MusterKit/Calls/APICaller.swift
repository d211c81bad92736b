import Foundation

/// Makes calls for the user whose tokens it has.
final class APICaller: Sendable {
  /// Seconds that logging out waits for the service.
  private static let logOutPatience = 10.0

  let sender: Sender
  let credentials: Credentials

  init(baseURL: URL, tokens: any TokenStore, transport: any Transport, retries: RetryPolicy) {
    sender = Sender(baseURL: baseURL, transport: transport, retries: retries)
    credentials = Credentials(tokens, sender)
  }

  /// Sends a call and decodes the body of its response.
  func get<Value: Decodable>(_ call: APICall, as type: Value.Type = Value.self) async throws -> Value {
    try await sender.get(call, call.isAuthenticated ? credentials : nil)
  }

  /// Sends a call with `If-None-Match`, and decodes the body of its response.
  ///
  /// - Returns: the value and its entity tag; nil if the copy is current.
  func getTagged<Value: Decodable>(_ call: APICall) async throws -> (Value, eTag: String?)? {
    let response = try await sender.send(call, call.isAuthenticated ? credentials : nil)
    if response.status == 304 { return nil }
    return (try Sender.decode(response), response.headers["etag"])
  }

  /// Sends a call without reading its response.
  func send(_ call: APICall) async throws {
    _ = try await sender.send(call, call.isAuthenticated ? credentials : nil)
  }

  /// Sends a call.
  ///
  /// - Returns: the unchanged body of its response.
  func bytes(of call: APICall) async throws -> Data {
    try await sender.send(call, call.isAuthenticated ? credentials : nil).body
  }

  /// Opens a stream of Server-Sent Events.
  func open(_ call: APICall) async throws -> TransportStream {
    try await sender.open(call, credentials)
  }

  /// Sends a call whose response has tokens, and saves these.
  func logIn(_ call: APICall) async throws -> Tokens {
    let tokens: Tokens = try await get(call)
    try await credentials.adopt(tokens)
    return tokens
  }

  /// Ends the session if the service can be reached, and forgets the tokens.
  ///
  /// - Returns: whether the service has ended the session.
  func logOut() async throws -> Bool {
    var call = APICall.write(.logOut, key: nil)
    // Ending a session twice is harmless.
    call.repeats = .always
    let hasEnded = await withTaskGroup(of: Bool.self) { [call] group in
      group.addTask {
        do {
          try await self.send(call)
          return true
        } catch {
          // The session had ended before.
          return error as? MusterError == .loggedOut
        }
      }
      group.addTask {
        try? await Task.sleep(for: .seconds(Self.logOutPatience))
        return false
      }
      defer { group.cancelAll() }
      return await group.next() ?? false
    }
    try await credentials.clear()
    return hasEnded
  }
}
