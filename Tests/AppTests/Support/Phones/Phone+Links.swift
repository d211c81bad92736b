import Testing

@testable import App

extension Phone {
  /// Creates a share link.
  ///
  /// - Parameter settings: the body.
  func createLink(
    to event: String, _ settings: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> (id: String, token: String) {
    let response = try await send("POST", "events/\(event)/links", settings)
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
