/// Hands a mail to the service that writes and sends it.
public protocol MailSender: Sendable {
  /// - Throws: any error; the mail is then retried later.
  func send(_ mail: OutgoingMail) async throws
}
