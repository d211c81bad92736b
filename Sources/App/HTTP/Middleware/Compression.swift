import Foundation
import HTTPServer

/// Compresses responses with gzip for clients that take it: texts of known length. Pictures are compressed already, and
/// streams and exports have no length.
///
/// Responses with secrets are left out: those below `/auth`, and those with `no-store`. If a response has a secret next
/// to text that an attacker chooses, its compressed length reveals whether they match (BREACH).
///
/// A compressed body has an ETag of its own, as RFC 9110 requires: `"3-gzip"` for `"3"`. Requests may send either.
enum Compression {
  /// Shorter bodies fit into one packet anyway.
  private static let minimum = 1 << 10
  /// Compressing more would take too long for one request.
  private static let maximum = 1 << 20
  private static let longBody = 64 << 10
  private static let types = ["application/json", "application/problem+json", "application/yaml", "text/"]

  static func apply(to response: Response, for request: Request) async throws -> Response {
    if response.status == .notModified { return unchanged(response, for: request) }
    guard let length = response.body.contentLength, length >= minimum, varies(response, request) else {
      return response
    }
    var response = response
    response.headers[.vary] = "Accept-Encoding"
    guard length <= maximum, response.headers[.contentEncoding] == nil, request.takesGzip else { return response }
    let plain = try await response.body.collect()
    guard let packed = length < longBody ? plain.gzipped() : await GlobalPool.run({ plain.gzipped() }) else {
      return response
    }
    response.pack(packed)
    return response
  }

  /// Whether the response depends on `Accept-Encoding`.
  private static func varies(_ response: Response, _ request: Request) -> Bool {
    guard response.headers.value(of: .cacheControl) != "no-store", !request.uri.path.hasPrefix("/api/v1/auth/") else {
      return false
    }
    // A 304 for a list has no type.
    guard let type = response.headers.value(of: .contentType) else { return true }
    return types.contains { type.hasPrefix($0) }
  }

  /// A 304 has the headers of the copy that it confirms.
  private static func unchanged(_ response: Response, for request: Request) -> Response {
    guard varies(response, request) else { return response }
    var response = response
    response.headers[.vary] = "Accept-Encoding"
    if let tag = response.headers[.eTag]?.packedTag, request.headers[.ifNoneMatch]?.contains(tag) == true {
      response.headers[.eTag] = tag
    }
    return response
  }
}

extension Response {
  /// Replaces the body by its compressed form.
  mutating func pack(_ packed: ByteBuffer) {
    body = ResponseBody(packed)
    headers[.contentEncoding] = "gzip"
    if let tag = headers[.eTag] { headers[.eTag] = tag.packedTag }
  }
}

extension String {
  private static let packedEnd = "-gzip"

  /// The ETag of the compressed form of a body that has this ETag.
  fileprivate var packedTag: String { String(dropLast()) + Self.packedEnd + "\"" }

  /// The content of the plain body's ETag, if this is the content of the ETag of its compressed form.
  var plainTag: String { hasSuffix(Self.packedEnd) ? String(dropLast(Self.packedEnd.count)) : self }
}
