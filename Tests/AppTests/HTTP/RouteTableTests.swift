import HTTPServer
import Testing

@testable import App

@Suite struct RouteTableTests {
  private let table: RouteTable = {
    let (metrics, respond): (_, Handler) = (MetricsRegistry(), { _, _ in .noContent })
    let reads = ["events", "events/{id}", "events/{id}/hosts/{host}", "events/mine/hosts", "{kind}/all"].flatMap {
      path in [.get, .head].map { Endpoint($0, "/api/\(path)", metrics: metrics, respond) }
    }
    return RouteTable(reads + [Endpoint(.delete, "/api/events/{id}", metrics: metrics, respond)])
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
}
