import Foundation
import HTTPTypes

/// A request. Its body may still be arriving.
public struct Request: Sendable {
  public let head: HTTPRequest
  public let uri: URI
  public var body: RequestBody

  public init(head: HTTPRequest, body: RequestBody = RequestBody()) {
    self.head = head
    self.body = body
    uri = URI(head.path ?? "")
  }

  @inlinable public var method: HTTPRequest.Method { head.method }
  @inlinable public var headers: HTTPFields { head.headerFields }

  /// Whether the client accepts gzip (RFC 9110, section 12.5.3) and does not prefer plain bodies.
  public var takesGzip: Bool {
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

extension HTTPFields {
  /// The same as the subscript, at a fraction of its cost if there is at most one such field.
  public func value(of name: HTTPField.Name) -> String? {
    var value: String?
    for field in self where field.name == name {
      if value != nil { return self[name] }
      value = field.value
    }
    return value
  }
}
