import Foundation
import MusterKit
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Servers and networks close connections while clients believe them open.
@Suite struct ReusedConnectionTests {
  @Test func `a write whose connection breaks off fails at once, even on a connection that was used before`()
    async throws
  {
    let shared = try await MusterServer.shared.value
    let proxy = try await HTTPFaultProxy(inFrontOf: shared.port)
    let transport = URLSessionTransport()
    let request = TransportRequest(
      method: "POST", url: proxy.url.appending(path: "api/v1/auth/login"),
      headers: ["Content-Type": "application/json"],
      body: Data(#"{"login": "unknown", "password": "correct horse"}"#.utf8), timeout: 10)
    for fault in [HTTPFaultProxy.Fault.loseRequest, .loseResponse, .cutResponse(0.9)] {
      proxy.plan { _, _ in .none }
      #expect(try await transport.send(request).status == 401)
      proxy.plan { _, _ in fault }
      do {
        let response = try await transport.send(request)
        Issue.record("\(response)")
      } catch {
        #expect((error as? URLError)?.code != .timedOut, "\(fault): \(error)")
      }
    }
    await proxy.close()
  }
}
