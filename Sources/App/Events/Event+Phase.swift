import Postgres

/// The rules about an event being open, over, or past its answers.
extension Event {
  /// How far an event has come.
  ///
  /// It is open until it is cancelled, or archived a day after its end. Hosts can change an open event, even one that
  /// is over, and invitees can answer it. Once it is over, visitors can no longer answer, hosts no longer set their
  /// answers, no one is approved, and no one who waits gets a place. After the deadline, only hosts set answers.
  struct Phase: Sendable {
    /// The hours for which an event stays live after its end.
    static let hoursLive = 24

    let isCancelled: Bool
    let isArchived: Bool
    /// Whether the event has ended.
    let isOver: Bool
    /// Whether the deadline for answers has passed.
    let isPastAnswers: Bool

    /// The columns for ``init(row:)``, of a row of `events`.
    static let columns = columns(of: "events")

    /// - Parameter events: the alias of a row of `events`.
    static func columns(of events: SQL) -> SQL {
      """
      \(events).status = 'cancelled' AS is_cancelled, \(events).archived_at IS NOT NULL AS is_archived,
      \(isOver(events)) AS is_over, coalesce(\(events).answer_by < clock_timestamp(), false) AS is_past_answers
      """
    }

    /// A SQL condition on `events`: whether an event is open.
    static func isOpen(_ events: SQL) -> SQL { "(\(events).status = 'scheduled' AND \(events).archived_at IS NULL)" }

    /// A SQL condition on `events`: whether an event has ended.
    static func isOver(_ events: SQL) -> SQL {
      "\(events).live_until <= clock_timestamp() + interval '\(unescaped: "\(hoursLive)") hours'"
    }

    /// Whether the event is open and has not ended.
    var isCurrent: Bool { !isCancelled && !isArchived && !isOver }

    /// Whether visitors no longer answer themselves, but hosts can still set their answers.
    var takesVisitorsOnlyByHosts: Bool { isCurrent && isPastAnswers }

    /// - Throws: ``AppError/eventCancelled``, ``AppError/eventArchived``
    func checkIsOpen() throws(AppError) {
      if isCancelled { throw .eventCancelled }
      if isArchived { throw .eventArchived }
    }

    /// - Throws: ``AppError/eventCancelled``, ``AppError/eventArchived``
    func checkIsNotOver() throws(AppError) {
      try checkIsOpen()
      if isOver { throw .eventArchived }
    }

    /// Why visitors cannot answer.
    enum Closing {
      case cancelled, over, pastAnswers
    }

    /// Nil if visitors can answer.
    var closing: Closing? {
      if isCancelled { return .cancelled }
      if isArchived || isOver { return .over }
      return isPastAnswers ? .pastAnswers : nil
    }

    /// Whether visitors can answer.
    ///
    /// - Throws: ``AppError/answersClosed``, and as ``checkIsNotOver()``
    func checkTakesVisitors() throws(AppError) {
      switch closing {
      case .cancelled: throw .eventCancelled
      case .over: throw .eventArchived
      case .pastAnswers: throw .answersClosed
      case nil: break
      }
    }
  }
}

extension Event.Phase {
  /// - Parameter row: has ``columns``. Before a change, it is locked.
  init(row: Row) throws {
    isCancelled = try row["is_cancelled"]
    isArchived = try row["is_archived"]
    isOver = try row["is_over"]
    isPastAnswers = try row["is_past_answers"]
  }
}

extension AppError {
  static let eventCancelled = AppError(.conflict, "event-cancelled", "The event is cancelled and can no longer change.")
  static let eventArchived = AppError(.conflict, "event-archived", "The event is over and can no longer change.")
  static let answersClosed = AppError(
    .conflict, "answers-closed", "The deadline for answers has passed. Ask a host to set your answer.")
}
