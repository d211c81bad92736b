import Foundation
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import MusterKit

/// Whether a failed request has left the device, as far as its error tells.
@Suite struct UnsentRequestTests {
  private let transport = URLSessionTransport()

  private func request(_ method: String, _ url: String, timeout: TimeInterval = 10) throws -> TransportRequest {
    let body = method == "DELETE" ? nil : Data("{}".utf8)
    return TransportRequest(
      method: method, url: try #require(URL(string: url)), headers: ["Content-Type": "application/json"], body: body,
      timeout: timeout)
  }

  private func isUnsent(_ request: TransportRequest) async throws -> Bool {
    do {
      let response = try await transport.send(request)
      throw Unexpected("\(response)")
    } catch is UnsentRequest {
      return true
    } catch is URLError {
      return false
    }
  }

  /// A port that nothing listens on.
  private func freePort() async throws -> Int {
    let listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .bind(host: "127.0.0.1", port: 0).get()
    let port = try #require(listener.localAddress?.port)
    try await listener.close()
    return port
  }

  @Test(arguments: ["POST", "DELETE"])
  func `a refused connection and a missing address leave nothing sent`(method: String) async throws {
    let port = try await freePort()
    #expect(try await isUnsent(try request(method, "http://127.0.0.1:\(port)/x")))
    #expect(try await isUnsent(try request(method, "http://localhost:\(port)/x")))
    #expect(try await isUnsent(try request(method, "http://muster.invalid/x")))
    let stream = try request(method, "http://127.0.0.1:\(port)/x")
    await #expect(throws: UnsentRequest.self) { try await transport.open(stream) }
  }

  /// The host's first address refuses the connection, and its second one accepts it.
  @Test(arguments: ["POST", "DELETE"], ["127.0.0.1", "localhost"])
  func `a lost request, a lost response and a broken TLS handshake may have been sent`(
    method: String, host: String
  ) async throws {
    let shared = try await MusterServer.shared.value
    let proxy = try await HTTPFaultProxy(inFrontOf: shared.port)
    for fault in [HTTPFaultProxy.Fault.loseRequest, .cutRequest(0.5), .loseResponse, .cutResponse(0.5)] {
      proxy.plan { _, _ in fault }
      #expect(try await !isUnsent(try request(method, "http://\(host):\(proxy.port)/api/v1/x")), "\(fault)")
    }
    proxy.isOffline = true
    #expect(try await !isUnsent(try request(method, "http://\(host):\(proxy.port)/api/v1/x")))
    #expect(try await !isUnsent(try request(method, "https://\(host):\(proxy.port)/api/v1/x")))
    await proxy.close()
  }

  @Test func `the service's time is read from its responses, and from no others`() throws {
    let clock = ServiceClock()
    let time = Date(timeIntervalSince1970: 1_777_628_100)
    func read(_ response: TransportResponse) { clock.read(response, of: Outcome(response)) }
    #expect(clock.now == nil)
    read(TransportResponse(status: 200, headers: ["date": "Fri, 01 May 2026 09:35:00 GMT"]))
    #expect(clock.now == nil)
    for text in ["yesterday", "Fri, 01 Mai 2026 09:35:00 GMT", "Fri, 1 May 2026 09:35:00 GMT", ""] {
      read(TransportResponse(status: 200, headers: ["content-type": "application/json", "date": text]))
      #expect(clock.now == nil, "\(text)")
    }
    let headers = ["content-type": "application/json", "date": "Fri, 01 May 2026 09:35:00 GMT"]
    read(TransportResponse(status: 200, headers: headers))
    let now = try #require(clock.now)
    #expect(now >= time && now < time.addingTimeInterval(60))
    for month in 0..<12 {
      let date = time.addingTimeInterval(Double(month) * 30 * 86_400)
      #expect(ServiceClock.date(ServiceClock.text(date)) == date)
    }
  }

  @Test func `Muster's responses tell its time`() async throws {
    let shared = try await MusterServer.shared.value
    let client = MusterClient(baseURL: shared.url)
    _ = try? await client.auth.logIn(as: "nobody", password: "wrong password")
    let time = try #require(client.cache.caller.sender.serviceClock.now)
    #expect(abs(time.timeIntervalSinceNow) < 60)
  }
}
