/// Statements and one sync: what a connection was asked in one go, and what has come back so far.
struct Batch {
  enum Step {
    case prepare(PreparedStatements.Key, PreparedStatements.Statement)
    case query(PreparedStatements.Key, PreparedStatements.Statement?)
  }

  /// The caller, and its deadlines.
  struct Call {
    let reply: Reply<[Rows]>
    let sent: ContinuousClock.Instant
    /// When the caller is told that there was no answer in time.
    let deadline: ContinuousClock.Instant
    /// When a server that lives has answered. Later than the deadline of a caller who has asked elsewhere before.
    let limit: ContinuousClock.Instant
    /// When it has given a first sign of life: the first of several statements has its answer by then.
    let firstAnswerBy: ContinuousClock.Instant
    /// Of the parameters.
    let bytes: Int
  }

  /// Statements that wait to be sent.
  struct Request {
    let statements: [SQL]
    let call: Call
  }

  let steps: [Step]
  let call: Call
  var position = 0
  var rows: [Rows] = []
  var error: PostgresError?
  /// Its deadline passed and its caller was told; the answer is still to be read.
  var isExpired = false
}
