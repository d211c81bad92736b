/// Statements that are sent together with one sync, and the results received so far. Its connection's lock protects it.
final class Batch {
  enum Step {
    /// Makes the server forget the prepared statement with this name.
    case deallocate(String)
    case prepare(PreparedStatements.Statement)
    case query(PreparedStatements.Statement)
  }

  /// The caller and its deadlines.
  struct Call {
    let reply: Reply<[Rows]>
    let sent: ContinuousClock.Instant
    /// When the caller gets a timeout.
    let deadline: ContinuousClock.Instant
    /// When a live server has responded. Later than the deadline if the caller spent time on another connection before.
    let limit: ContinuousClock.Instant
    /// When a live server has sent the first of several results.
    let firstResultBy: ContinuousClock.Instant
    /// The size of the parameters.
    let bytes: Int
  }

  /// Statements that are queued to be sent.
  struct Request {
    let statements: [SQL]
    let call: Call
  }

  let steps: [Step]
  let call: Call
  /// The strongest effect of its statements.
  let effect: SessionEffect
  var position = 0
  var rows: [Rows] = []
  var error: PostgresError?
  /// The deadline passed and the caller got a timeout. The results are still to be read.
  var isExpired = false

  init(steps: [Step], call: Call, effect: SessionEffect) {
    self.steps = steps
    self.call = call
    self.effect = effect
    rows.reserveCapacity(steps.count)
  }
}
