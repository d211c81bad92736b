import Logging

/// Receives each batch of statements that the database client logs, without their parameters.
struct StatementHandler: LogHandler {
  let onStatements: @Sendable ([String]) -> Void
  var metadata = Logger.Metadata()
  var logLevel = Logger.Level.debug

  /// - Parameter onStatements: called when the results have arrived, before the caller gets them.
  static func logger(_ label: String, onStatements: @escaping @Sendable ([String]) -> Void) -> Logger {
    var logger = Logger(label: label) { _ in StatementHandler(onStatements: onStatements) }
    logger.logLevel = .debug
    return logger
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    guard case .array(let texts) = event.metadata?["statements"] else { return }
    onStatements(texts.map { "\($0)" })
  }
}
