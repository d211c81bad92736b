import Hummingbird
import Testing

@testable import App

@Suite struct RouteTableTests {
  private let table: RouteTable = {
    let routes = RouteCollector(metrics: MetricsRegistry())
    let group = routes.group("api")
    for path in ["events", "events/{id}", "events/{id}/hosts/{host}", "events/mine/hosts", "{kind}/all"] {
      group.get(RouterPath(path)) { _, _ in Response.noContent }
    }
    group.delete("events/{id}") { _, _ in Response.noContent }
    return RouteTable(routes.endpoints)
  }()

  private func template(of path: String) -> String? { table.route(of: path)?.route.endpoints.first?.path }

  @Test(arguments: [
    ("/api/events", "/api/events"),
    ("/api/events/", "/api/events"),
    ("//api//events", "/api/events"),
    ("/api/events/1", "/api/events/{id}"),
    ("/api/events/1/hosts/2", "/api/events/{id}/hosts/{host}"),
    ("/api/events/mine/hosts", "/api/events/mine/hosts"),
    // A literal that leads nowhere does not hide the parameter.
    ("/api/events/mine", "/api/events/{id}"),
    ("/api/events/mine/hosts/2", "/api/events/{id}/hosts/{host}"),
    ("/api/events/all", "/api/events/{id}"),
    ("/api/friends/all", "/api/{kind}/all"),
  ])
  func `a path finds its template, and a literal wins over a parameter`(path: String, expected: String) {
    #expect(template(of: path) == expected)
  }

  @Test(arguments: [
    "", "/", "/api", "/API/events", "/api/event", "/api/events/1/hosts", "/api/events/1/2/3/4/5", "/%61pi/events",
  ])
  func `other paths have no route`(path: String) {
    #expect(table.route(of: path) == nil)
  }

  @Test func `parameters have the text of the path`() throws {
    let found = try #require(table.route(of: "/api/events/a%20b/hosts/c"))
    #expect(found.parameters.get("id") == "a%20b")
    #expect(found.parameters.get("host") == "c")
    #expect(found.parameters.get("kind") == nil)
    let all = try #require(table.route(of: "/api/friends/all"))
    #expect(all.parameters.get("kind") == "friends")
    #expect(all.parameters.get("id") == nil)
  }

  @Test func `a path with a GET also has a HEAD, and Allow names every method`() throws {
    let found = try #require(table.route(of: "/api/events/1"))
    #expect(found.route.allow == "DELETE, GET, HEAD")
    #expect(found.route.endpoint(for: .head)?.path == "/api/events/{id}")
    #expect(found.route.endpoint(for: .put) == nil)
  }
}
