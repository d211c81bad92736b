import Testing

@testable import MusterKit

/// The client's routes, which are generated from the OpenAPI document.
@Suite struct RouteTests {
  private static let id = "01900000-0000-7000-8000-000000000002"

  @Test func `each operation of the document is read from its path, and written as it`() throws {
    let operations = try PublishedDocument().operations()
    #expect(operations.count > 70)
    for (method, template, _) in operations {
      let path = template.replacing(/\{\w+\}/, with: Self.id)
      let route = try Route(method: method.uppercased(), path: path)
      #expect(route.template == "\(method.uppercased()) \(template)")
      #expect(route.method == method.uppercased() && route.path == path)
    }
  }

  @Test func `ids in paths are typed, and the most literal path goes first`() throws {
    let (event, user) = (try #require(Event.ID(Self.id)), try #require(User.ID(Self.id)))
    #expect(try Route(method: "GET", path: "/users/me") == .getMe)
    #expect(try Route(method: "GET", path: "/users/\(Self.id.uppercased())") == .getUser(user))
    #expect(try Route(method: "PUT", path: "/events/\(Self.id)/invitations/me") == .answerInvitation(event))
    #expect(
      try Route(method: "PUT", path: "/events/\(Self.id)/invitations/\(Self.id)") == .setAnswer(event, .init(user)))
  }

  @Test(arguments: [
    ("GET", "/nothing"), ("PUT", "/friends"), ("GET", "/"), ("GET", "/users/me/friends"), ("get", "/friends"),
  ]) func `another path is no route`(method: String, path: String) {
    let problem = #expect(throws: Problem.self) { try Route(method: method, path: path) }
    #expect(problem?.status == 404 && problem?.type == .routeNotFound)
  }

  @Test(arguments: ["A-token_1", "a/b c", "%2F", "ä?#"]) func `a link's token is escaped, and read again`(token: String)
    throws
  {
    let route = Route.joinByLink(token)
    #expect(route.path.split(separator: "/").count == 3)
    #expect(try Route(method: "POST", path: route.path) == route)
  }
}
