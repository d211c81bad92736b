import Foundation
import HTTPServer

extension Request {
  static let maximumBody = 64 << 10

  var hasBody: Bool {
    headers.value(of: .contentLength).map { $0 != "0" } ?? (headers.value(of: .transferEncoding) != nil)
  }

  /// Compares bytes, because finding the characters of a long token costs more than the rest of the request.
  var bearerToken: String? {
    let scheme = "bearer "
    guard let header = headers.value(of: .authorization), header.utf8.count > scheme.utf8.count,
      // The scheme may have capitals.
      zip(header.utf8, scheme.utf8).allSatisfy({ $0 | 0x20 == $1 })
    else { return nil }
    return String(header[header.utf8.index(header.startIndex, offsetBy: scheme.utf8.count)...])
  }

  /// The body as JSON; nil without a body. Throws if the content type is not JSON, if the body is compressed or not in
  /// UTF-8, or if ``JSON`` refuses it.
  func json(upTo limit: Int = Self.maximumBody, else refusal: AppError = .bodyTooLarge) async throws -> JSON? {
    let buffer = try await bytes(upTo: limit, else: refusal)
    guard buffer.readableBytes > 0 else { return nil }
    if let type = headers.value(of: .contentType), !Self.isJSON(type) { throw AppError.notJSON }
    let text = try text(of: buffer)
    do throws(JSON.Malformed) {
      return try JSON(parsing: text)
    } catch {
      throw AppError(.malformed, "malformed-body", error.message)
    }
  }

  /// The raw body. A body whose `Content-Length` is too large is refused unread, any other as soon as it exceeds the
  /// limit. Waits for the end of the request: without it, a stream of HTTP/2 may still fail.
  func bytes(upTo limit: Int, else refusal: AppError) async throws -> ByteBuffer {
    if let length = headers.value(of: .contentLength).flatMap({ Int($0) }), length > limit { throw refusal }
    guard let bytes = try await body.collect(upTo: limit) else { throw refusal }
    return bytes
  }

  private static func isJSON(_ contentType: String) -> Bool {
    if contentType == "application/json" { return true }
    let type = contentType.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
    return type == "application/json" || type.hasPrefix("application/") && type.hasSuffix("+json")
  }

  /// The fields of the body, which must be a JSON object. See ``Fields``.
  func read<Value>(_ body: (inout Fields) throws -> Value) async throws -> Value {
    guard let json = try await json() else {
      throw AppError(.malformed, "malformed-body", "The request must have a JSON object as its body.")
    }
    return try Fields.read(json, body)
  }

  /// The query's parameters. See ``QueryFields``.
  func query<Value>(_ body: (inout QueryFields) -> Value) throws -> Value {
    var fields = QueryFields(uri)
    let value = body(&fields)
    fields.refuseStrays()
    guard fields.errors.isEmpty else { throw AppError.invalid(fields.errors) }
    return value
  }
}
