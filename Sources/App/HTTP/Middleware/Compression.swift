import CZlib
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore

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
    let body = PlainBody()
    try await response.body.write(body)
    guard let packed = length < longBody ? gzip(body.bytes) : await GlobalPool.run({ gzip(body.bytes) }) else {
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

  /// - Parameter level: 3 has nearly the ratio of 6 in less than half of the time.
  /// - Returns: nil if there is no memory.
  static func gzip(_ plain: ByteBuffer, level: Int32 = 3) -> ByteBuffer? {
    // Most bodies are short. A small window then does the same, and is set up several times faster.
    let windowBits: Int32 = plain.readableBytes < 32 << 10 ? 13 : 15
    var stream = z_stream()
    // zlib keeps this address from call to call.
    return withUnsafeMutablePointer(to: &stream) { stream in
      // With 16 added to the window's size, the format is gzip.
      let status = deflateInit2_(
        stream, level, Z_DEFLATED, windowBits + 16, windowBits - 7, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
        Int32(MemoryLayout<z_stream>.size))
      guard status == Z_OK else { return nil }
      defer { deflateEnd(stream) }
      let limit = Int(deflateBound(stream, uLong(plain.readableBytes)))
      var packed = ByteBuffer()
      var isComplete = false
      plain.withUnsafeReadableBytes { source in
        stream.pointee.next_in = UnsafeMutablePointer(mutating: source.bindMemory(to: UInt8.self).baseAddress)
        stream.pointee.avail_in = uInt(source.count)
        packed.writeWithUnsafeMutableBytes(minimumWritableBytes: limit) { target in
          stream.pointee.next_out = target.bindMemory(to: UInt8.self).baseAddress
          stream.pointee.avail_out = uInt(limit)
          isComplete = deflate(stream, Z_FINISH) == Z_STREAM_END
          return Int(stream.pointee.total_out)
        }
      }
      return isComplete ? packed : nil
    }
  }
}

extension Response {
  /// Replaces the body by its compressed form.
  mutating func pack(_ packed: ByteBuffer) {
    body = ResponseBody(byteBuffer: packed)
    headers[.contentEncoding] = "gzip"
    if let tag = headers[.eTag] { headers[.eTag] = tag.packedTag }
  }
}

extension Request {
  /// Whether the client accepts gzip (RFC 9110, section 12.5.3) and does not prefer plain bodies.
  var takesGzip: Bool {
    guard let header = headers[.acceptEncoding] else { return false }
    var weights: [String: Double] = [:]
    for item in header.lowercased().split(separator: ",") {
      let parts = item.split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }
      guard let coding = parts.first else { continue }
      // A malformed weight counts as 0, because a plain body suits everyone.
      let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
      weights[coding] = (0...1).contains(weight) ? weight : 0
    }
    let gzip = weights["gzip"] ?? weights["x-gzip"] ?? weights["*"] ?? 0
    return gzip > 0 && gzip >= weights["identity"] ?? 0
  }
}

extension String {
  private static let packedEnd = "-gzip"

  /// The ETag of the compressed form of a body that has this ETag.
  fileprivate var packedTag: String { String(dropLast()) + Self.packedEnd + "\"" }

  /// The content of the plain body's ETag, if this is the content of the ETag of its compressed form.
  var plainTag: String { hasSuffix(Self.packedEnd) ? String(dropLast(Self.packedEnd.count)) : self }
}
