import Foundation
import HTTPServer
import NIOCore
import NIOPosix
import Testing

@testable import App

/// Connections that arrive while the server stops.
@Suite struct AcceptingTests {
  @Test func `connections that arrive while the server stops end with it, and not the process`() async throws {
    for _ in 0..<20 {
      try await serving({ _, _ in Response(status: .ok) }) { port in
        for _ in 0..<3 { Thread.detachNewThread { connectUntilRefused(port) } }
        // The listener waits for the event loop of a new connection. If it is slow, the listener stops meanwhile.
        for loop in MultiThreadedEventLoopGroup.singleton.makeIterator() where Bool.random() {
          loop.execute { usleep(30_000) }
        }
        try await Task.sleep(for: .milliseconds(Int.random(in: 0...20)))
      }
    }
  }
}

/// Opens connections, one after the other, and closes each immediately.
private func connectUntilRefused(_ port: Int) {
  #if canImport(Darwin)
    let stream = SOCK_STREAM
  #else
    let stream = Int32(SOCK_STREAM.rawValue)
  #endif
  while true {
    let socket = Foundation.socket(AF_INET, stream, 0)
    defer { close(socket) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    let status = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard status == 0 else { return }
  }
}
