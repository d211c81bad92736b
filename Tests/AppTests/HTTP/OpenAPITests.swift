import Foundation
import Testing
import Yams

@testable import App

/// The router and the published document must agree, in both directions.
@Suite struct OpenAPITests {
  private func document() throws -> [String: Any] {
    try #require(try Yams.load(yaml: Resources.openAPI) as? [String: Any])
  }

  @Test func `every route is in the document, and nothing else`() async throws {
    try await TestApp.run { app in
      let served = app.routes
      let paths = try #require(try document()["paths"] as? [String: [String: Any]])
      let methods: Set = ["get", "put", "post", "delete", "patch", "head", "options"]
      var described: Set<String> = []
      for (path, item) in paths {
        for key in item.keys where methods.contains(key) { described.insert("\(key.uppercased()) \(path)") }
      }
      #expect(served.subtracting(described).sorted() == [], "not in the document")
      #expect(described.subtracting(served).sorted() == [], "not served")
    }
  }

  @Test func `the document is served unchanged`() async throws {
    try await TestApp.run { app in
      let answer = try await app.send("GET", "/openapi.yaml")
      #expect(answer.status == 200)
      #expect(answer.body == Resources.openAPI)
      #expect(answer.header("Content-Type")?.hasPrefix("application/yaml") == true)
    }
  }

  @Test func `every operation has an id and responses, and says whether it needs a token`() async throws {
    try await TestApp.run { app in
      let document = try document()
      #expect(document["openapi"] as? String == "3.1.0")
      #expect((document["info"] as? [String: Any])?["version"] as? String == Release.version)
      let paths = try #require(document["paths"] as? [String: [String: Any]])
      var ids: [String] = []
      for (path, item) in paths {
        for (method, value) in item where method != "parameters" {
          let operation = try #require(value as? [String: Any], "\(method) \(path)")
          ids.append(try #require(operation["operationId"] as? String, "\(method) \(path)"))
          let responses = try #require(operation["responses"] as? [String: Any], "\(method) \(path)")
          let answer = try await app.send(
            method.uppercased(), path.replacing(/\{\w+\}/, with: User.ID.new().description))
          let isOpen = answer.problem != "no-token"
          // Signed-in operations inherit the document's requirement or state it; open ones lift it.
          let security = (operation["security"] ?? document["security"]) as? [Any]
          #expect((security?.isEmpty ?? true) == isOpen, "\(method) \(path)")
          #expect(responses["401"] != nil || isOpen, "\(method) \(path)")
        }
      }
      #expect(Set(ids).count == ids.count)
    }
  }
}
