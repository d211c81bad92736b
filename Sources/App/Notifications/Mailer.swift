import AsyncHTTPClient
import Foundation
import Logging
import NIOCore
import NIOHTTP1
import Postgres

/// The way out of the process for mails: hands one to whoever writes it in words and sends it.
public protocol MailSender: Sendable {
  /// - Throws: any error; the mail is then tried again later.
  func send(_ mail: OutgoingMail) async throws
}

/// Writes mails to the log, for `muster dev`, whose developers have no other mailbox. This is the one place where a
/// token and an address are printed.
public struct LogMailer: MailSender {
  private let logger: Logger

  public init(logger: Logger) {
    self.logger = logger
  }

  public func send(_ mail: OutgoingMail) async throws {
    var metadata: Logger.Metadata = [
      "id": "\(mail.id)", "type": "\(mail.type)", "to": "\(mail.to)", "username": "\(mail.username)",
    ]
    if let token = mail.token, let expiresAt = mail.expiresAt {
      metadata["token"] = "\(token)"
      metadata["expiresAt"] = "\(expiresAt.rfc3339())"
    }
    logger.notice("mail", metadata: metadata)
  }
}

/// Stands where no way is configured: mails wait in the queue until one is.
public struct NoMailer: MailSender {
  public init() {}

  public func send(_ mail: OutgoingMail) async throws {
    throw DeliveryFailure(description: "MUSTER_MAIL_WEBHOOK is not set")
  }
}

/// Where mails are posted, and what signs them.
public struct MailWebhook: Sendable {
  public let url: String
  public let secret: WebhookSecret
}

/// Posts mails to a webhook, signed after Standard Webhooks 1.0.
public struct WebhookMailer: MailSender {
  private let webhook: MailWebhook
  private let client: HTTPClient

  private static let deadline = TimeAmount.seconds(10)

  public init(_ webhook: MailWebhook, client: HTTPClient) {
    self.webhook = webhook
    self.client = client
  }

  /// - Throws: unless the webhook answers with a 2xx in time.
  public func send(_ mail: OutgoingMail) async throws {
    var json = JSONWriter()
    mail.write(to: &json)
    var request = HTTPClientRequest(url: webhook.url)
    request.method = .POST
    request.headers = ["Content-Type": "application/json", "User-Agent": "muster"]
    for (name, value) in webhook.secret.headers(id: mail.id, body: json.buffer) {
      request.headers.add(name: name, value: value)
    }
    request.body = .bytes(json.buffer)
    let status = try await client.execute(request, timeout: Self.deadline).status
    guard (200..<300).contains(status.code) else {
      throw DeliveryFailure(description: "the mail webhook answered \(status.code)")
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
          $0.member("token", token)
          $0.member("expiresAt", expiresAt)
        }
      }
    }
  }
}

extension Dependencies {
  /// Nil without `MUSTER_MAIL_WEBHOOK`.
  public var webhookMailer: (any MailSender)? {
    mailWebhook.map { WebhookMailer($0, client: httpClient) }
  }
}
