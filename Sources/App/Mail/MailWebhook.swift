/// Where mails are posted, and the secret that signs them.
public struct MailWebhook: Sendable {
  public let url: String
  public let secret: WebhookSecret
}

extension Dependencies {
  /// Nil without `MUSTER_MAIL_WEBHOOK`.
  public var webhookMailer: (any MailSender)? {
    configuration.mailWebhook.map { WebhookMailer($0, client: httpClient) }
  }
}
