import Testing

@testable import App

extension Phone {
  /// Creates a share link.
  ///
  /// - Parameter settings: the body. If it does not mention `approval`, guests need none.
  func createLink(
    to event: String, _ settings: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> (id: String, token: String) {
    let body = settings.contains("approval") ? settings : #"{"approval": false, \#(settings.dropFirst())"#
    let response = try await send("POST", "events/\(event)/links", body)
    #expect(response.status == 201, "\(response.body)", sourceLocation: sourceLocation)
    let url = try #require(response.json["url"].string, sourceLocation: sourceLocation)
    return (
      try #require(response.json["id"].string, sourceLocation: sourceLocation),
      String(try #require(url.split(separator: "/").last, sourceLocation: sourceLocation))
    )
  }

  func join(
    _ token: String, expecting status: Int = 200, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    let response = try await send("POST", "links/\(token)/join")
    #expect(response.status == status, "\(response.body)", sourceLocation: sourceLocation)
    return response
  }
}
