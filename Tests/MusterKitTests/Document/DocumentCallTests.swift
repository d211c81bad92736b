import Foundation
import TestSupport
import Testing

@testable import MusterKit

/// The requests of `MusterClient` and the operations of the OpenAPI document, in both directions.
@Suite struct DocumentCallTests {
  private let operations: [DocumentOperation]

  init() throws { operations = try DocumentOperation.all(in: PublishedDocument()) }

  private func operation(of request: TransportRequest) -> DocumentOperation? {
    let path = request.url.pathComponents.dropFirst()
    guard path.prefix(2) == ["api", "v1"] else { return nil }
    let matches = operations.filter {
      $0.method == request.method && $0.matches(Array(path.dropFirst(2)), naming: EveryCall.pathValues)
    }
    return matches.max { $0.literals < $1.literals }
  }

  /// A service that responds with the examples of the document.
  private func service() -> ScriptedTransport {
    ScriptedTransport { request in
      guard let operation = operation(of: request) else { throw ScriptedTransport.Lost() }
      return operation.success
    } streams: { request in
      guard let operation = operation(of: request) else { throw ScriptedTransport.Lost() }
      let body = operation.success.body
      return TransportStream(
        status: 200, headers: ["content-type": "text/event-stream"], chunks: AsyncThrowingStream { $0.yield(body) })
    }
  }

  /// Makes a call, and checks its requests.
  ///
  /// - Returns: the operations that it called.
  private func operations(
    of call: EveryCall.Call, with tokens: StoredTokens = .sample(1), _ comment: Comment
  ) async throws -> Set<String> {
    let transport = service()
    let client = try MusterClient.scripted(transport, tokens: MemoryTokenStore(tokens))
    await #expect(throws: Never.self, comment) { try await call(client) }
    #expect(!transport.requests.isEmpty, comment)
    var called: Set<String> = []
    for request in transport.requests {
      guard let operation = operation(of: request) else {
        Issue.record("The document has no \(request.method) \(request.url.path).")
        continue
      }
      called.insert(operation.name)
      #expect(operation.faults(in: request) == [], "\(operation.name) does not know this, or lacks it.")
    }
    return called
  }

  @Test func `each call sends what the document describes and reads its example, and each operation has a call`()
    async throws
  {
    var called: Set<String> = []
    for (number, call) in EveryCall.all.enumerated() {
      called.formUnion(try await operations(of: call, "call \(number)"))
    }
    // Refreshing has no call of its own: others do it.
    let refresh = try #require(operations.first { $0.name == "POST /auth/refresh" })
    let user = try JSONDecoder.muster().decode(Tokens.self, from: refresh.success.body).user.id
    let refreshing = try await operations(
      of: { _ = try await $0.me.get() }, with: .sample(1, user: user, expiresIn: -1), "refresh")
    #expect(refreshing == ["POST /auth/refresh", "GET /users/me"])
    called.formUnion(refreshing)
    // Apple's server calls this one.
    called.insert("POST /auth/apple/notifications")
    #expect(Set(operations.map(\.name)).subtracting(called).sorted() == [], "These operations have no call.")
    #expect(called.count > 70)
  }

  @Test func `every public call of the client is among them`() throws {
    let made = try String(contentsOf: Self.folder.appending(path: "EveryCall.swift"), encoding: .utf8)
    let calls = made.matches(of: /\$0\.((?:\w+\.)+\w+)\(/).map { String($0.1) }
    let published = try ClientSources().calls
    #expect(published.count > 70)
    #expect(Self.counts(calls) == Self.counts(published))
  }

  @Test func `each list in pages is also a sequence`() throws {
    let calls = try ClientSources().calls
    let folder = Program.checkout.appending(path: "Sources/MusterKit/API")
    let sources = try FileManager.default.contentsOfDirectory(atPath: folder.path).map {
      try String(contentsOf: folder.appending(path: $0), encoding: .utf8)
    }
    // Stores ask for the pages of a collection in another form.
    let lists = sources.flatMap { $0.matches(of: /cursor: String\? = nil[^{]*-> Page</) }
    #expect(lists.count > 8)
    #expect(calls.filter { $0.hasSuffix("ages") }.count == lists.count)
  }

  private static let folder = Program.checkout.appending(path: "Tests/MusterKitTests/Document")

  private static func counts(_ names: [String]) -> [String: Int] {
    Dictionary(names.map { ($0, 1) }, uniquingKeysWith: +)
  }
}
