import AsyncHTTPClient
import NIOHTTP1

extension ProviderToken {
  /// Sends a request with the token. If the provider refuses the token, sends it once more with another one.
  ///
  /// - Parameter scheme: the first word of the header, spelled as in the provider's documentation.
  func send(
    _ request: HTTPClientRequest, scheme: String, by client: HTTPClient, within limit: Duration,
    isRefused: (OutgoingResponse) -> Bool
  ) async throws -> OutgoingResponse {
    func send(with token: String) async throws -> OutgoingResponse {
      var request = request
      request.headers.add(name: "authorization", value: "\(scheme) \(token)")
      return try await client.response(to: request, within: limit)
    }
    let token = try await text()
    let response = try await send(with: token)
    guard isRefused(response), let another = try await text(insteadOf: token) else { return response }
    return try await send(with: another)
  }
}
