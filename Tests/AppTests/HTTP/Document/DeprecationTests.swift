import AsyncHTTPClient
import HTTPServer
import NIOHTTP1
import Postgres
import Testing

@testable import App

@Suite struct DeprecationTests {
  @Test func `each response of a deprecated route says since when, and until when it stays`() async throws {
    let deprecation = Deprecation(
      since: try #require(Timestamp(rfc3339: "2026-05-01T00:00:00Z")),
      sunset: try #require(Timestamp(rfc3339: "2027-06-01T00:00:00Z")))
    let metrics = MetricsRegistry()
    let old: Handler = { _, context in
      guard context.parameters.get("id") == "1" else { throw AppError.eventNotFound }
      return .noContent
    }
    let new: Handler = { _, _ in .noContent }
    let endpoints =
      [.get, .head].map { Endpoint($0, "/old/{id}", metrics: metrics, deprecation: deprecation, old) }
      + [Endpoint(.post, "/old/{id}", metrics: metrics, new), Endpoint(.get, "/new", metrics: metrics, new)]
    let responder = Envelope(
      routes: RouteTable(endpoints), otherMetrics: RequestMetrics("any", "none", in: metrics),
      log: RequestLog(all: false, addresses: false), trustedProxies: TrustedProxies(),
      untrusted: UntrustedProxies(in: metrics),
      publicURL: PublicURL("http://muster.test"), cors: nil)
    try await serving({ request, peer in
      try await responder.respond(to: request, context: Context(peer: peer, logger: .quiet))
    }) { port in
      for (method, path, status, isDeprecated) in [
        ("GET", "old/1", 204, true), ("HEAD", "old/1", 204, true), ("GET", "old/2", 404, true),
        ("POST", "old/1", 204, false), ("GET", "new", 204, false), ("GET", "nowhere", 404, false),
      ] as [(String, String, UInt, Bool)] {
        var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)/\(path)")
        request.method = .RAW(value: method)
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(10))
        #expect(response.status.code == status, "\(method) \(path)")
        let headers = ["Deprecation", "Sunset"].map { response.headers.first(name: $0) }
        #expect(
          headers == (isDeprecated ? ["@1777593600", "Tue, 01 Jun 2027 00:00:00 GMT"] : [nil, nil]),
          "\(method) \(path)")
      }
    }
  }
}
