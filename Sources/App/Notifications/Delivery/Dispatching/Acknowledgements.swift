import Foundation
import Postgres

/// The outcomes of a worker's rows, until they are written. One write takes all that have accumulated. Each statement
/// checks the lease, so it changes no rows whose lease the worker has lost.
struct Acknowledgements: Sendable {
  typealias Lease = LeasedRow.Lease

  /// Delivered, or no longer useful: to be deleted.
  private(set) var done: [Lease] = []
  private(set) var returned: [Returned] = []

  /// A row that stays in the queue.
  struct Returned: Sendable {
    let lease: Lease
    var isAttempt = false
    /// Nil: due as before.
    var delay: Double?
    var error: String?
    var isDead = false
  }

  var isEmpty: Bool { done.isEmpty && returned.isEmpty }
  var count: Int { done.count + returned.count }
  var leases: [Lease] { done + returned.map(\.lease) }
  var finished: [Int64] { done.map(\.id) }

  mutating func finish(_ row: LeasedRow) { done.append(row.lease) }

  /// Gives back rows that were not sent.
  mutating func release(_ rows: some Sequence<LeasedRow>) {
    returned += rows.map { Returned(lease: $0.lease) }
  }

  /// Gives back a row that could not be sent, through no fault of its own.
  mutating func postpone(_ row: LeasedRow, by delay: Double) {
    returned.append(Returned(lease: row.lease, delay: delay))
  }

  mutating func retry(_ row: LeasedRow, after delay: Double, because error: String) {
    returned.append(
      Returned(lease: row.lease, isAttempt: true, delay: delay, error: Self.printable(error)))
  }

  /// Makes a row a dead letter.
  mutating func discard(_ row: LeasedRow, because error: String) {
    returned.append(Returned(lease: row.lease, isAttempt: true, error: Self.printable(error), isDead: true))
  }

  static func + (earlier: Acknowledgements, later: Acknowledgements) -> Acknowledgements {
    var both = earlier
    both.done += later.done
    both.returned += later.returned
    return both
  }

  /// PostgreSQL's text cannot contain U+0000, and operators need only the start of a long error.
  private static func printable(_ error: String) -> String {
    String(String.UnicodeScalarView(error.unicodeScalars.filter { $0 != "\u{0}" }.prefix(500)))
  }

  // MARK: Writing

  /// The statements for one transaction. Repeating them does no harm.
  func statements(for queue: LeaseQueue) -> [SQL] {
    guard !isEmpty else { return [] }
    if returned.isEmpty { return [deleting(queue)] }
    let isLate = returned.contains { $0.delay != nil && !$0.isDead }
    return [locking(queue), deleting(queue), returning(queue)]
      + (isLate ? queue.chain.map { [postponing(queue, $0)] } ?? [] : [])
  }

  /// The rows that are still leased, locked in id order, as deletions lock them.
  private static func leased(_ leases: [Lease], _ queue: LeaseQueue) -> SQL {
    "leased AS MATERIALIZED (SELECT q.id FROM \(queue.rows(of: leases)) ORDER BY q.id FOR UPDATE OF q)"
  }

  private func locking(_ queue: LeaseQueue) -> SQL { "WITH \(Self.leased(leases, queue)) SELECT count(*) FROM leased" }

  private func deleting(_ queue: LeaseQueue) -> SQL {
    "WITH \(Self.leased(done, queue)) DELETE FROM \(queue.name) AS q USING leased WHERE q.id = leased.id"
  }

  /// A worker that survives an attempt does not die of it, so the count of deaths starts again.
  private func returning(_ queue: LeaseQueue) -> SQL {
    """
    UPDATE \(queue.name) AS q
    SET attempts = CASE WHEN r.is_attempt THEN least(q.attempts, 1000000) + 1 ELSE q.attempts END,
      deaths = CASE WHEN r.is_attempt THEN 0 ELSE q.deaths END,
      due_at = CASE WHEN r.delay IS NULL THEN q.due_at ELSE now() + make_interval(secs => r.delay) END,
      last_error = coalesce(r.error, q.last_error),
      died_at = CASE WHEN r.is_dead THEN now() END,
      lease = NULL, leased_until = NULL
    FROM unnest(
      \(returned.map(\.lease.id)), \(returned.map(\.lease.token)), \(returned.map(\.isAttempt)),
      \(returned.map(\.delay)), \(returned.map(\.error)), \(returned.map(\.isDead))
    ) AS r (id, lease, is_attempt, delay, error, is_dead)
    WHERE q.id = r.id AND q.lease = r.lease
    """
  }

  private static let maximumPostponed = 1000

  /// Makes rows behind a waiting row due no earlier than that row. Otherwise, claims would read thousands of rows again
  /// and again that they cannot take.
  private func postponing(_ queue: LeaseQueue, _ chain: Chain) -> SQL {
    let late = returned.filter { $0.delay != nil && !$0.isDead }.map(\.lease.id)
    return """
      WITH later AS MATERIALIZED (
        SELECT b.id, q.due_at
        FROM \(queue.name) AS q
        CROSS JOIN LATERAL (
          SELECT b.id FROM \(queue.name) AS b
          WHERE \(chain.range("b", behind: "q")) AND b.died_at IS NULL AND b.lease IS NULL AND b.due_at < q.due_at
          ORDER BY \(chain.order("b"))
          LIMIT \(Self.maximumPostponed)
          FOR UPDATE OF b SKIP LOCKED
        ) AS b
        WHERE q.id = ANY(\(late)) AND q.lease IS NULL
        LIMIT \(Self.maximumPostponed)
      )
      UPDATE \(queue.name) AS q SET due_at = later.due_at FROM later WHERE q.id = later.id
      """
  }
}
