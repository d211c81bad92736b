import Foundation
import NIOCore
import NIOPosix
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

@Suite struct HTTPFaultProxyTests {
  @Test func `the proxy forwards, loses and cuts as planned`() async throws {
    let server = try await MusterServer.shared.value
    let proxy = try await HTTPFaultProxy(inFrontOf: server.port)
    let url = proxy.url.appending(path: "openapi.yaml")
    let (whole, _) = try await URLSession.shared.data(from: url)
    #expect(whole.count > 100_000)
    for fault in [
      HTTPFaultProxy.Fault.loseRequest, .cutRequest(0.5), .loseResponse, .cutResponse(0.5), .cutResponse(0.99),
    ] {
      proxy.plan { _, _ in fault }
      proxy.takeExchanges()
      await #expect(throws: URLError.self, "\(fault)") { try await URLSession.shared.data(from: url) }
    }
    proxy.plan { _, _ in .delay(milliseconds: 300) }
    #expect(try await URLSession.shared.data(from: url).0 == whole)
    proxy.isOffline = true
    await #expect(throws: URLError.self) { try await URLSession.shared.data(from: url) }
    proxy.isOffline = false
    #expect(try await URLSession.shared.data(from: url).0 == whole)
    await proxy.close()
    await #expect(throws: URLError.self) { try await URLSession.shared.data(from: url) }
  }

  @Test(.timeLimit(.minutes(5))) func `a proxy that is closed while connections arrive ends them all`() async throws {
    for round in 0..<100 {
      let proxy = try await HTTPFaultProxy(inFrontOf: 1)
      await withDiscardingTaskGroup { group in
        for _ in 0..<8 {
          group.addTask {
            while let client = try? await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
              .connect(host: "127.0.0.1", port: proxy.port).get()
            {
              await withTaskCancellationHandler {
                try? await client.closeFuture.get()
              } onCancel: {
                client.close(promise: nil)
              }
            }
          }
        }
        group.addTask {
          try? await Task.sleep(for: .microseconds(round * 50))
          await proxy.close()
        }
      }
    }
  }
}
