import Foundation
import MusterClient
import TestSupport
import Testing

/// Servers and networks close connections while clients believe them open.
@Suite struct ReusedConnectionTests {
  @Test func `a write after the connection was closed succeeds at once`() async throws {
    let shared = try await MusterServer.shared.value
    let proxy = try await HTTPFaultProxy(inFrontOf: shared.port)
    let ana = try await TestUser.register("ana", at: proxy.url)
    // The connection ends after the next request, before its response.
    for number in 1...5 {
      let fault = Once()
      proxy.plan { _, _ in fault.take() ? .loseResponse : .none }
      let start = ContinuousClock.now
      try await ana.client.me.edit(ProfileEdit(bio: .set("\(number)")))
      #expect(ContinuousClock.now - start < .seconds(10), "as long as a timeout")
      proxy.hangUp()
    }
    #expect(try await ana.client.me.get().bio == "5")
    await proxy.close()
  }
}
