/// Counts the mails that another sender sends.
struct MeasuredMailer: MailSender {
  private let mailer: any MailSender
  private let deliveries: DeliveryCounters

  init(_ mailer: any MailSender, in metrics: MetricsRegistry) {
    self.mailer = mailer
    deliveries = DeliveryCounters("mail", in: metrics)
  }

  func send(_ mail: OutgoingMail) async throws {
    try await deliveries.attempt { try await mailer.send(mail) }
  }
}
