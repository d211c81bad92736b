import AsyncHTTPClient
import NIOCore
import NIOHTTP1

/// Posts mails to a webhook, signed according to Standard Webhooks 1.0.
public struct WebhookMailer: MailSender {
  private let webhook: MailWebhook
  private let client: HTTPClient

  private static let deadline = TimeAmount.seconds(10)

  public init(_ webhook: MailWebhook, client: HTTPClient) {
    self.webhook = webhook
    self.client = client
  }

  /// - Throws: unless the webhook responds with a 2xx status in time.
  public func send(_ mail: OutgoingMail) async throws {
    var json = JSONWriter()
    mail.write(to: &json)
    var request = HTTPClientRequest(url: webhook.url)
    request.method = .POST
    request.headers = ["Content-Type": "application/json", "User-Agent": "muster"]
    for (name, value) in webhook.secret.headers(id: mail.id, body: json.buffer) {
      request.headers.add(name: name, value: value)
    }
    if let trace = mail.trace { request.headers.add(name: "traceparent", value: trace.traceparent()) }
    request.body = .bytes(json.buffer)
    let status = try await client.execute(request, timeout: Self.deadline).status
    guard (200..<300).contains(status.code) else {
      throw DeliveryFailure(description: "the mail webhook returned \(status.code)")
    }
  }
}

extension OutgoingMail: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("type", "mail.\(type)")
      $0.member("timestamp", createdAt)
      $0.member("data") {
        $0.object {
          $0.member("to", to)
          $0.member("username", username)
          $0.member("displayName", displayName)
          $0.member("code", code)
          $0.member("token", token)
          $0.member("expiresAt", expiresAt)
          if let proves { $0.member("proves", proves) }
          if let tokenURL { $0.member("url", tokenURL) }
          $0.member("unsubscribeUrl", optOutURL ?? letter?.unsubscribeURL)
          guard let letter else { return }
          $0.member("url", letter.url)
          $0.member("event", letter.event)
          $0.member("changes", letter.changes)
        }
      }
    }
  }
}
