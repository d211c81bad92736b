import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Testing

@testable import App

extension TestApp {
  /// A picture as it is before it is stored.
  func picture(_ bytes: [UInt8]) async throws -> Picture {
    try await Picture(UploadedPicture(ByteBuffer(bytes: bytes)), decodedBy: dependencies.pictureDecoder)
  }

  /// GETs a URL as an image view does: unchanged, and without a token.
  func fetch(_ url: String, method: String = "GET", headers: [(String, String)] = []) async throws -> BinaryResponse {
    var request = HTTPClientRequest(url: url)
    request.method = .RAW(value: method)
    for (name, value) in headers { request.headers.add(name: name, value: value) }
    let response = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
    let body = try await response.body.collect(upTo: 16 << 20)
    return BinaryResponse(
      status: Int(response.status.code), headers: response.headers, bytes: Array(body.readableBytesView))
  }
}

extension Phone {
  /// - Parameter type: the `Content-Type` that the phone sends.
  @discardableResult
  func putPicture(
    _ bytes: [UInt8], type: String = "application/octet-stream", expecting status: Int = 200,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    var request = HTTPClientRequest(url: "\(app.url)/api/v1/users/me/picture")
    request.method = .PUT
    request.headers.add(name: "Authorization", value: "Bearer \(accessToken)")
    request.headers.add(name: "Content-Type", value: type)
    request.body = .bytes(ByteBuffer(bytes: bytes))
    let received = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
    let body = try await received.body.collect(upTo: 16 << 20)
    let response = APIResponse(
      status: Int(received.status.code), headers: received.headers.map { ($0, $1) }, body: String(buffer: body))
    #expect(response.status == status, "\(response.body)", sourceLocation: sourceLocation)
    return response
  }

  /// Uploads a picture.
  ///
  /// - Returns: its URL.
  func show(_ bytes: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) async throws -> String {
    let response = try await putPicture(bytes, sourceLocation: sourceLocation)
    return try #require(response.json["pictureUrl"].string, sourceLocation: sourceLocation)
  }

  func removePicture(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let response = try await send("DELETE", "users/me/picture")
    #expect(response.status == 204, "\(response.body)", sourceLocation: sourceLocation)
  }
}

/// A response of the service, in bytes.
struct BinaryResponse: Sendable {
  let status: Int
  let headers: HTTPHeaders
  let bytes: [UInt8]

  func header(_ name: String) -> String? { headers.first(name: name) }
}
