import Crypto
import Foundation
import HTTPServer
import Synchronization
import Testing

@testable import App

/// A webhook of a third party. It keeps all deliveries, and its responses are configurable.
final class WebhookSink: Sendable {
  struct Delivery: Sendable {
    /// With names in lower case.
    let headers: [String: String]
    let body: String

    var id: String? { headers["webhook-id"] }
    var json: JSON { (try? JSON(parsing: body.utf8)) ?? .null }
  }

  let secret = "whsec_" + SymmetricKey(size: .bits256).withUnsafeBytes { Data($0).base64EncodedString() }
  private let kept = Mutex<[Delivery]>([])
  private let port = Mutex(0)
  private let respond: @Sendable (_ number: Int) async -> Response

  private init(_ respond: @escaping @Sendable (_ number: Int) async -> Response) {
    self.respond = respond
  }

  /// The host and port on which it listens.
  var address: String { "127.0.0.1:\(port.withLock { $0 })" }

  var deliveries: [Delivery] { kept.withLock { $0 } }

  /// The environment that makes Muster deliver to this sink.
  var environment: [String: String] {
    [
      "MUSTER_MAIL_WEBHOOK": "http://\(address)/mails", "MUSTER_MAIL_WEBHOOK_SECRET": secret,
      "MUSTER_WEBHOOK_ALLOW_PRIVATE": "on",
    ]
  }

  /// Whether a delivery is signed by Standard Webhooks 1.0. This code is independent of the service's.
  ///
  /// - Parameter other: a secret to check instead of the sink's own.
  func isGenuine(_ delivery: Delivery, with other: String? = nil) -> Bool {
    let secret = other ?? self.secret
    guard let id = delivery.id, let timestamp = delivery.headers["webhook-timestamp"],
      let signatures = delivery.headers["webhook-signature"], let seconds = Double(timestamp),
      abs(seconds - Date().timeIntervalSince1970) < 300, let key = Data(base64Encoded: String(secret.dropFirst(6)))
    else { return false }
    let signed = Data("\(id).\(timestamp).\(delivery.body)".utf8)
    let mac = HMAC<SHA256>.authenticationCode(for: signed, using: SymmetricKey(data: key))
    return signatures.split(separator: " ").contains("v1,\(Data(mac).base64EncodedString())")
  }

  /// Runs the sink while `body` runs.
  ///
  /// - Parameter status: the status for a delivery. `number` counts the deliveries, from 1.
  static func run(
    status: @escaping @Sendable (_ number: Int) async -> HTTPResponse.Status = { _ in .noContent },
    _ body: @escaping @Sendable (WebhookSink) async throws -> Void
  ) async throws {
    try await run(responding: { number in Response(status: await status(number)) }, body)
  }

  /// Runs the sink with complete responses instead of statuses.
  static func run(
    responding respond: @escaping @Sendable (_ number: Int) async -> Response,
    _ body: @escaping @Sendable (WebhookSink) async throws -> Void
  ) async throws {
    let sink = WebhookSink(respond)
    try await serving({ request, _ in try await sink.take(request) }) { port in
      sink.port.withLock { $0 = port }
      try await body(sink)
    }
  }

  private func take(_ request: Request) async throws -> Response {
    let body = try #require(try await request.body.collect(upTo: 1 << 20))
    let headers = request.headers.map { ($0.name.canonicalName, $0.value) }
    let delivery = Delivery(headers: Dictionary(headers) { $1 }, body: String(buffer: body))
    let number = kept.withLock { kept in
      kept.append(delivery)
      return kept.count
    }
    return await respond(number)
  }
}
