import Foundation

/// Sends calls: with the user's token, repeated as the policy allows, and with problems as errors.
final class APICaller: Sendable {
  let baseURL: URL
  let transport: any Transport
  let retries: RetryPolicy
  let credentials: Credentials

  init(baseURL: URL, tokens: any TokenStore, transport: any Transport, retries: RetryPolicy) {
    self.baseURL = baseURL
    self.transport = transport
    self.retries = retries
    credentials = Credentials(tokens)
  }

  /// Sends a call and decodes the body of its response.
  func get<Value: Decodable>(_ call: APICall, as type: Value.Type = Value.self) async throws -> Value {
    let response = try await send(call)
    do {
      return try JSONDecoder.muster().decode(type, from: response.body)
    } catch {
      throw MusterError.unexpectedResponse(status: response.status, detail: "\(error)")
    }
  }

  /// Sends a call.
  ///
  /// - Returns: a response of 2xx.
  @discardableResult
  func send(_ call: APICall) async throws -> TransportResponse {
    throw MusterError.unreachable("not there yet")
  }

  /// Sends a call whose response has tokens, and saves these.
  func logIn(_ call: APICall) async throws -> Tokens {
    let tokens: Tokens = try await get(call)
    try await credentials.adopt(tokens)
    return tokens
  }

  /// Ends the session if the service can be reached, and forgets the tokens.
  func logOut() async throws {
    try await credentials.clear()
  }
}
