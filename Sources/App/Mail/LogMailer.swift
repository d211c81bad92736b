import Logging

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
