import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Real workers deliver notifications to a real receiver, while any of them may fail at any moment.
@Suite(.serialized, .timeLimit(.minutes(20))) struct ChaosTests {
  @Test
  func `through kills, crashes and outages everything arrives in order, and twice only after a takeover`()
    async throws
  {
    let seed = testsAreLong ? UInt64.random(in: 0...UInt64.max) : 7
    let total = testsAreLong ? 20_000 : 2000
    try await Storm.gather(50, leavers: 20, seed: seed) { storm in
      try await storm.rage(
        notifications: total, pause: testsAreLong ? 100...400 : 300...800, restarts: testsAreLong ? 6 : 2)
      var workers: [Program] = []
      for _ in 0..<3 { workers.append(try await storm.startWorker()) }
      defer { for worker in workers { worker.signal(SIGKILL) } }
      try await storm.calm(within: .seconds(120))
      var arrivals = storm.sink.arrivals
      try await storm.expectDelivery(of: arrivals, atLeast: total)
      let takenOver = try await storm.excuses().takenOver
      // The run had enough kills, refusals and takeovers.
      #expect(storm.kills >= 5 && storm.sink.refusals > 0 && !takenOver.isEmpty, "seed \(seed)")

      // Without disturbances, everything arrives once.
      let stormy = arrivals.count
      try await storm.write(total / 50, as: 9, pausing: 0...0)
      try await storm.calm(within: .seconds(120))
      arrivals = storm.sink.arrivals
      let pairs = arrivals[stormy...].map { [$0.device, $0.id] }
      #expect(Set(pairs).count == pairs.count, "seed \(seed)")
      try await storm.expectDelivery(of: arrivals, atLeast: total + total / 10)
      try await storm.expectPartings(in: arrivals)
      for worker in workers { worker.signal(SIGTERM) }
      for worker in workers { #expect(try await worker.exitStatus(within: .seconds(12)) == 0) }
    }
  }

  /// Counts the statements that delete deliveries, whether or not they find any.
  private static let countingDeletions: [SQL] = [
    "CREATE SEQUENCE deletions",
    """
    CREATE FUNCTION count_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM nextval('deletions');
      RETURN NULL;
    END
    $$
    """,
    """
    CREATE TRIGGER deletions AFTER DELETE ON deliveries
    FOR EACH STATEMENT EXECUTE FUNCTION count_deletion()
    """,
  ]

  @Test func `a worker that was stopped for too long cannot acknowledge deliveries that another worker holds`()
    async throws
  {
    try await Storm.gather(6, seed: 1) { storm in
      let (app, sink) = (storm.app, storm.sink)
      let people = storm.readers.map(\.phone.userID)
      let devices = storm.readers.flatMap(\.secrets).count
      let event = Event.ID.new()
      func rows() async throws -> Int {
        try await app.value("SELECT count(*) FROM deliveries") ?? 0
      }
      let other = try await storm.startWorker()
      defer { other.signal(SIGKILL) }
      try await other.waitForOutput("working")
      other.signal(SIGSTOP)
      let sleeper = try await storm.startWorker()
      defer { sleeper.signal(SIGKILL) }
      try await sleeper.waitForOutput("working")
      sink.weather = .still
      for title in ["First", "Second"] {
        try await app.service.change { $0.notify(people, about: .waitlistPromoted(event, title, guest: .new())) }
      }
      try await eventually { sink.count == devices }
      sleeper.signal(SIGSTOP)
      // The other worker takes over all deliveries, and the first ones are on their way.
      other.signal(SIGCONT)
      try await eventually(within: .seconds(15)) { sink.count == 2 * devices }
      #expect(try await rows() == 2 * devices)
      for statement in Self.countingDeletions { try await app.database.execute(statement) }
      sink.release(devices)
      sleeper.signal(SIGCONT)
      try await eventually {
        let called: Bool? = try await app.value("SELECT is_called FROM deletions")
        return called == true
      }
      // The sleeper believes that it has delivered them and acknowledges them. None of its acknowledgements counts.
      for _ in 0..<20 {
        #expect(try await rows() == 2 * devices)
        try await Task.sleep(for: .milliseconds(50))
      }
      sink.weather = .fair
      sink.release(.max)
      try await storm.calm(within: .seconds(60))
      let counts = sink.arrivals.reduce(into: [[String]: Int]()) { $0[[$1.device, $1.id], default: 0] += 1 }
      #expect(counts.values.filter { $0 >= 2 }.count == devices && counts.values.filter { $0 == 1 }.count == devices)
      try await storm.expectDelivery(of: sink.arrivals, atLeast: 2 * people.count)
      for worker in [sleeper, other] { worker.signal(SIGTERM) }
      for worker in [sleeper, other] { #expect(try await worker.exitStatus(within: .seconds(12)) == 0) }
    }
  }
}
