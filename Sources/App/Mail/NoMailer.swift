/// Used if no mail webhook is configured: mails wait in the queue until one is.
public struct NoMailer: MailSender {
  public init() {}

  public func send(_ mail: OutgoingMail) async throws {
    throw DeliveryFailure(description: "MUSTER_MAIL_WEBHOOK is not set")
  }
}
