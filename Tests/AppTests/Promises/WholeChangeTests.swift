import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import App

/// No change commits without its rows in the queue, and no row without its change, even if connections and services die
/// between two statements. Afterwards, everything that was queued is in the inboxes once.
@Suite(.timeLimit(.minutes(10))) struct WholeChangeTests {
  private static let guests = 5

  /// The service that phones call, with a record of its failures.
  private final class Site: Sendable {
    struct State: Sendable {
      var service: ServiceProcess?
      var isOver = false
      var terminated = 0
      var kills = 0
      var failures = 0
      var responses = 0
      /// The number of confirmed edits of each confirmed event.
      var edits: [Event.ID: Int] = [:]
    }

    let state = Mutex(State())

    var isOver: Bool { state.withLock { $0.isOver } }
    var responses: Int { state.withLock { $0.responses } }
    /// Whether enough has died. On a busy machine, all changes may be done before that.
    var hadItsTroubles: Bool { state.withLock { $0.terminated >= 20 && $0.kills >= 2 && $0.failures > 0 } }

    /// Sends a request once.
    ///
    /// - Returns: nil if the outcome is unknown.
    func attempt(_ phone: Phone, _ method: String, _ path: String, _ body: String? = nil) async throws -> APIResponse? {
      try Task.checkCancellation()
      let service = state.withLock { $0.service }
      guard let service,
        let response = try? await service.app.send(method, path, body: body, token: phone.accessToken),
        response.status != 503
      else {
        state.withLock { $0.failures += 1 }
        try await Task.sleep(for: .milliseconds(5))
        return nil
      }
      state.withLock { $0.responses += 1 }
      return response
    }

    /// Repeats a request until the response has one of these statuses.
    @discardableResult
    func insist(
      _ phone: Phone, _ method: String, _ path: String, _ body: String? = nil, _ statuses: Int...
    ) async throws -> APIResponse {
      while true {
        guard let response = try await attempt(phone, method, path, body) else { continue }
        guard statuses.contains(response.status) else { throw Unexpected("\(method) \(path): \(response.body)") }
        return response
      }
    }
  }

  @Test func `each change has its rows and each row its change, although services and connections die at any moment`()
    async throws
  {
    try await TestApp.run { app in
      let site = Site()
      var parties: [(host: Phone, guests: [Phone])] = []
      for number in 1...4 {
        let host = try await app.signUp("host\(number)")
        parties.append((host, try await app.crowd(Self.guests, around: host, named: "guest\(number)-")))
      }
      try await app.takeMails()
      var configuration = Database.Configuration(url: app.databaseURL)
      configuration.applicationName = "reaper"
      let reaper = try Database(configuration)
      defer { reaper.close() }
      let gathered = parties
      try await app.withConnections(64, isPatient: false) {
        try await withThrowingTaskGroup(of: Void.self) { group in
          group.addTask { try await Self.reap(site, by: reaper, app) }
          group.addTask {
            try await Self.live(gathered, at: site)
            site.state.withLock { $0.isOver = true }
          }
          // The first task that fails ends the others.
          for try await _ in group {}
        }
      }
      try await Self.expectWholeChanges(site.state.withLock { $0.edits }, in: app)
      let requests: Int? = try await app.value("SELECT count(*) FROM friend_requests WHERE status = 'accepted'")
      #expect(requests == parties.count * Self.guests * (Self.guests - 1) / 2)
      let (terminated, kills, failures) = site.state.withLock { ($0.terminated, $0.kills, $0.failures) }
      #expect(terminated >= 20 && kills >= 2 && failures > 0, "\(terminated), \(kills), \(failures)")
      try await app.takeNotifications()
    }
  }

  // MARK: Changes

  private static func live(_ parties: [(host: Phone, guests: [Phone])], at site: Site) async throws {
    try await withThrowingTaskGroup(of: Void.self) { people in
      for party in parties {
        people.addTask { try await befriend(party.guests, at: site) }
        people.addTask {
          for _ in 0..<(testsAreLong ? 100 : 4) { try await plan(party.host, party.guests, at: site) }
          // The test fails if all of these are done and too little has died.
          for _ in 0..<60 where !site.hadItsTroubles { try await plan(party.host, party.guests, at: site) }
        }
      }
      for try await _ in people {}
    }
  }

  /// Makes all guests friends of each other.
  private static func befriend(_ guests: [Phone], at site: Site) async throws {
    for (place, sender) in guests.enumerated() {
      for receiver in guests.dropFirst(place + 1) {
        let asked = try await site.insist(
          sender, "POST", "friend-requests", #"{"receiverId": "\#(receiver.id)"}"#, 200, 201)
        let request = asked.json["id"].string ?? ""
        try await site.insist(receiver, "POST", "friend-requests/\(request)/accept", nil, 200)
      }
    }
  }

  /// Creates an event, lets all guests answer "going", edits it a few times, and cancels it.
  private static func plan(_ host: Phone, _ guests: [Phone], at site: Site) async throws {
    let ids = guests.map { "\"\($0.id)\"" }.joined(separator: ",")
    let made = try await site.insist(
      host, "POST", "events",
      """
      {"title": "Picnic", "startTime": "2030-05-01T18:00:00Z", "timeZone": "Europe/Berlin", "inviteeIds": [\(ids)]}
      """, 201)
    let id = made.json["id"].string ?? ""
    let event: Event.ID = try #require(Event.ID(id))
    site.state.withLock { $0.edits[event] = 0 }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for guest in guests {
        group.addTask {
          try await site.insist(guest, "PUT", "events/\(id)/invitations/me", #"{"status": "going"}"#, 200)
        }
      }
      for number in 1...4 {
        // Each edit is sent once. If its outcome is unknown, the version shows it.
        let response = try await site.attempt(host, "PATCH", "events/\(id)", #"{"title": "Picnic \#(number)"}"#)
        guard let response else { continue }
        #expect(response.status == 200, "\(response.body)")
        site.state.withLock { $0.edits[event, default: 0] += 1 }
      }
      for try await _ in group {}
    }
    try await site.insist(host, "DELETE", "events/\(id)", nil, 200, 204)
  }

  // MARK: Failures

  /// Kills busy connections of the service, and now and then the service itself.
  private static func reap(_ site: Site, by reaper: Database, _ app: TestApp) async throws {
    var random = SeededRandom(seed: 11)
    while !site.isOver {
      let service = try await ServiceProcess(of: app, ["MUSTER_THROTTLING": "off"])
      defer { service.program.signal(SIGKILL) }
      site.state.withLock { $0.service = service }
      // Counted in responses and not in time, because a slow machine needs more time per response.
      let end = site.responses + Int.random(in: 15...40, using: &random)
      while !site.isOver, site.responses < end {
        let responses = site.responses
        try await Task.sleep(for: .milliseconds(Int.random(in: 3...30, using: &random)))
        guard site.responses > responses else { continue }
        let terminated: Int? = try await reaper.execute(
          """
          SELECT count(*) FILTER (WHERE pg_terminate_backend(pid))
          FROM (
            SELECT pid FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = 'muster serve' AND state <> 'idle'
            -- Preferably between two statements of one change.
            ORDER BY state = 'idle in transaction' DESC, random()
            LIMIT 1
          ) AS victim
          """
        ).first.map { try $0[0] }
        site.state.withLock { $0.terminated += terminated ?? 0 }
      }
      try await service.kill()
      site.state.withLock { $0.kills += 1 }
    }
    // Wait for sessions of killed services that are still committing.
    try await eventually {
      let left: Int? = try await reaper.value(
        """
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'muster serve%'
        """)
      return left == 0
    }
  }

  // MARK: Checks

  /// The queue rows that the changes in the tables must have.
  private static let changes: SQL = """
    SELECT 'friend-request' AS type, receiver_id AS recipient_id, \(Notice.subject("sender_id")) AS subject_id, id::text AS detail
    FROM friend_requests
    UNION ALL
    SELECT 'friend-accepted', sender_id, \(Notice.subject("receiver_id")), '' FROM friend_requests WHERE status = 'accepted'
    UNION ALL
    SELECT 'event-invited', user_id, event_id, '' FROM invitations
    UNION ALL
    SELECT 'invitation-answered', e.creator_id, e.id, i.user_id::text
    FROM invitations AS i JOIN events AS e ON e.id = i.event_id
    WHERE i.status = 'going'
    UNION ALL
    SELECT 'event-updated', i.user_id, e.id, ''
    FROM invitations AS i
    JOIN events AS e ON e.id = i.event_id
    CROSS JOIN generate_series(2, e.version - CASE WHEN e.status = 'cancelled' THEN 1 ELSE 0 END)
    UNION ALL
    SELECT 'event-cancelled', i.user_id, e.id, ''
    FROM invitations AS i JOIN events AS e ON e.id = i.event_id
    WHERE e.status = 'cancelled'
    """

  private static let rows: SQL = """
    SELECT type, recipient_id, subject_id,
      CASE type
        WHEN 'friend-request' THEN payload->>'requestId'
        WHEN 'invitation-answered' THEN payload->>'userId'
        ELSE ''
      END AS detail
    FROM queued
    """

  /// Copies the queue, one row per recipient, with the id that the notification gets in the inbox.
  private static let keepingQueue: SQL = """
    CREATE TABLE queued AS
    SELECT notification_id(q.notice_id, recipient.id) AS id, q.type, recipient.id AS recipient_id, q.subject_id, q.payload,
      q.created_at
    FROM notification_queue AS q
    CROSS JOIN LATERAL unnest(q.recipient_ids) AS recipient (id)
    """
  private static let queued: SQL = "SELECT id, type, recipient_id, subject_id, payload, created_at FROM queued"
  private static let filed: SQL = "SELECT id, type, recipient_id, subject_id, payload, created_at FROM notifications"

  /// - Parameter edits: the number of confirmed edits of each confirmed event.
  private static func expectWholeChanges(_ edits: [Event.ID: Int], in app: TestApp) async throws {
    try await app.database.execute(keepingQueue)
    try await app.fanOut()
    for (name, one, other) in [
      ("changes without rows", changes, rows), ("rows without changes", rows, changes),
      ("queued, but not in the inbox", queued, filed), ("in the inbox, but not queued", filed, queued),
    ] {
      let odd = try await app.database.rows(
        "SELECT type, count(*) FROM ((\(one)) EXCEPT ALL (\(other))) AS odd GROUP BY type ORDER BY type")
      let found = try odd.map { row -> String in
        let (type, count): (String, Int) = (try row[0], try row[1])
        return "\(type): \(count)"
      }
      #expect(found == [], "\(name)")
    }
    // All confirmed changes are there.
    let (events, counts) = (Array(edits.keys), edits.values.map { Int32($0) })
    let lost = try await app.database.rows(
      """
      SELECT answered.id
      FROM unnest(\(events), \(counts)) AS answered (id, edits)
      LEFT JOIN events AS e ON e.id = answered.id AND e.status = 'cancelled' AND e.going_count = \(guests)
        AND e.version >= 2 + answered.edits
      WHERE e.id IS NULL
      """)
    #expect(lost.count == 0)
  }
}
