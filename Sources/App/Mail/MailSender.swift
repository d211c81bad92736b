import AsyncHTTPClient
import Logging
import NIOCore
import NIOHTTP1

/// Hands a mail to the service that writes and sends it.
public protocol MailSender: Sendable {
  /// - Throws: any error; the mail is then retried later.
  func send(_ mail: OutgoingMail) async throws
}

/// Writes mails to the log, for `muster dev`, where developers have no other mailbox. Nothing else logs tokens and
/// mail addresses.
public struct LogMailer: MailSender {
  private let logger: Logger

  public init(logger: Logger) {
    self.logger = logger
  }

  public func send(_ mail: OutgoingMail) async throws {
    var metadata: Logger.Metadata = ["id": "\(mail.id)", "type": "\(mail.type)", "to": "\(mail.to)"]
    if let username = mail.username { metadata["username"] = "\(username)" }
    if let letter = mail.letter { metadata["url"] = "\(letter.url)" }
    if let url = mail.tokenURL { metadata["url"] = "\(url)" }
    if let url = mail.optOutURL { metadata["unsubscribeUrl"] = "\(url)" }
    if let code = mail.code { metadata["code"] = "\(code)" }
    if let token = mail.token, let expiresAt = mail.expiresAt {
      metadata["token"] = "\(token)"
      metadata["expiresAt"] = "\(expiresAt.rfc3339())"
    }
    logger.notice("mail", metadata: metadata)
  }
}

/// Used if no mail webhook is configured: mails wait in the queue until one is.
public struct NoMailer: MailSender {
  public init() {}

  public func send(_ mail: OutgoingMail) async throws {
    throw DeliveryFailure(description: "MUSTER_MAIL_WEBHOOK is not set")
  }
}

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

/// Where mails are posted, and the secret that signs them.
public struct MailWebhook: Sendable {
  public let url: String
  public let secret: WebhookSecret
}

extension Dependencies {
  /// Nil without `MUSTER_MAIL_WEBHOOK`.
  public var webhookMailer: (any MailSender)? {
    self.mailWebhook.map { WebhookMailer($0, client: httpClient) }
  }
}
