import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

extension OutgoingResponse {
  /// A provider's error code, for the log; nil for anything but a single word.
  static func word(_ value: JSON?) -> String? {
    guard case .string(let text) = value, text.wholeMatch(of: /[A-Za-z_]{1,60}/) != nil else { return nil }
    return text
  }
}

/// The complete response of another service.
struct OutgoingResponse: Sendable {
  let status: Int
  let headers: HTTPHeaders
  let body: ByteBuffer

  /// Nil if the body is not JSON, or is JSON that ``JSON`` refuses.
  var json: JSON? { try? JSON(parsing: body.readableBytesView) }
}

extension HTTPClient {
  /// Sends a request and reads the complete response.
  ///
  /// - Parameter limit: the time from connecting to the last byte. The client's own deadline ends at the headers.
  /// - Throws: if the request fails, or if the body is longer than `bytes`.
  func response(
    to request: HTTPClientRequest, within limit: Duration, atMost bytes: Int = 64 << 10
  ) async throws -> OutgoingResponse {
    try await withThrowingTaskGroup(of: OutgoingResponse.self) { group in
      group.addTask {
        let response = try await self.execute(request, timeout: TimeAmount(limit))
        return OutgoingResponse(
          status: Int(response.status.code), headers: response.headers,
          body: try await response.body.collect(upTo: bytes))
      }
      group.addTask {
        try await _Concurrency.Task.sleep(for: limit)
        throw HTTPClientError.deadlineExceeded
      }
      defer { group.cancelAll() }
      guard let response = try await group.next() else { throw CancellationError() }
      return response
    }
  }
}
