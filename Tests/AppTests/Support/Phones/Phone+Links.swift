import Testing

@testable import App

extension Phone {
  /// Creates a share link.
  ///
  /// - Parameter settings: the body.
  func createLink(
    to event: String, _ settings: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> (id: String, token: String) {
    let answer = try await send("POST", "events/\(event)/links", settings)
    #expect(answer.status == 201, "\(answer.body)", sourceLocation: sourceLocation)
    let url = try #require(answer.json["url"].string, sourceLocation: sourceLocation)
    return (
      try #require(answer.json["id"].string, sourceLocation: sourceLocation),
      String(try #require(url.split(separator: "/").last, sourceLocation: sourceLocation))
    )
  }

  func join(
    _ token: String, expecting status: Int = 200, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> Answer {
    let answer = try await send("POST", "links/\(token)/join")
    #expect(answer.status == status, "\(answer.body)", sourceLocation: sourceLocation)
    return answer
  }
}
