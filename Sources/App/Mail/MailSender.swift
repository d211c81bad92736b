/// The way out of the process for mails: hands one to the service that words and sends it.
public protocol MailSender: Sendable {
  /// - Throws: any error; the mail is then tried again later.
  func send(_ mail: OutgoingMail) async throws
}
