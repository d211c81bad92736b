import Foundation
import Postgres
import Testing

@testable import App

/// Compares the arrivals with the notifications that were filed.
extension Storm {
  private struct Filed: Sendable {
    let id: String
    let type: String
    let payload: JSON

    var isEdit: Bool { type == Notice.Kind.eventUpdated.rawValue }
    var changes: Set<String> { Storm.fields(in: payload) }
  }

  private struct Line: Hashable {
    let recipient: String
    let subject: String
  }

  /// Valid reasons for sending a notification twice.
  struct Excuses: Sendable {
    /// Notifications whose deliveries were taken over after their lease expired.
    let takenOver: Set<String>
    /// Device and notification of each attempt that a worker recorded as failed.
    let failed: Set<[String]>
  }

  func excuses() async throws -> Excuses {
    let takeovers = try await app.database.rows("SELECT DISTINCT notification_id FROM takeovers")
    let failures = try await app.database.rows(
      "SELECT DISTINCT d.token, f.notification_id FROM failures AS f JOIN devices AS d ON d.id = f.device_id")
    return Excuses(
      takenOver: Set(try takeovers.map { row in (try row[0] as UUID).uuidString.lowercased() }),
      failed: Set(
        try failures.map { row in
          [URL(string: try row[0] as String)?.path ?? "", (try row[1] as UUID).uuidString.lowercased()]
        }))
  }

  /// The changed fields in a payload.
  private static func fields(in payload: JSON) -> Set<String> {
    Set(payload["changes"].array.compactMap { $0["field"].string })
  }

  /// The filed notifications by recipient and subject, in the order of the inbox.
  private func filed() async throws -> [Line: [Filed]] {
    let rows = try await app.database.rows(
      "SELECT recipient_id, subject_id, id, type, payload FROM notifications ORDER BY recipient_id, filed_at")
    var lines: [Line: [Filed]] = [:]
    for row in rows {
      let (recipient, subject, id): (User.ID, UUID, UUID) = (try row[0], try row[1], try row[2])
      let payload = Notice.rendered(try row[4], at: .now())
      let line = Line(recipient: recipient.description, subject: subject.uuidString.lowercased())
      let one = Filed(
        id: id.uuidString.lowercased(), type: try row[3], payload: try JSON(parsing: payload.text.utf8))
      lines[line, default: []].append(one)
    }
    return lines
  }

  /// Expects that every filed notification arrived at each of the recipient's devices, with a valid signature and the
  /// right content. First arrivals must be in the order of the subject. A repetition is valid only if the earlier
  /// attempt failed as far as its worker knew, or if its delivery was taken over.
  func expectDelivery(of arrivals: [StormySink.Arrival], atLeast count: Int) async throws {
    let (lines, excuse) = (try await filed(), try await excuses())
    #expect(lines.values.map(\.count).reduce(0, +) >= count)
    let byDevice = Dictionary(grouping: arrivals, by: \.device)
    var faults: [String] = []
    var known = 0
    for reader in readers {
      let own = lines.filter { $0.key.recipient == reader.phone.id }.values
      for (device, secret) in reader.secrets {
        let here = byDevice[device] ?? []
        known += here.count
        let byID = Dictionary(grouping: here, by: \.id)
        var found = here.filter { !$0.isSigned(with: secret) }.map { "\($0.id) has a wrong signature" }
        for (id, times) in byID where !excuse.takenOver.contains(id) && !excuse.failed.contains([device, id]) {
          if times.dropLast().contains(where: \.isAccepted) { found.append("\(id) was accepted before") }
        }
        let strangers = Set(byID.keys).subtracting(own.joined().map(\.id))
        found += strangers.map { "\($0) is not for this user" }
        for line in own { found += Self.faults(of: line, byID, here, excuse.takenOver) }
        faults += found.map { "\(device): \($0)" }
      }
    }
    known += leavers.map { byDevice[$0.device]?.count ?? 0 }.reduce(0, +)
    if known != arrivals.count { faults.append("\(arrivals.count - known) arrived at unknown devices") }
    #expect(faults.isEmpty, "seed \(seed), \(faults.count) faults: \(faults.prefix(20))")
    for fault in faults.prefix(3) { try await explain(fault, arrivals) }
  }

  /// Prints what happened to the deliveries of a line in the seconds around the arrivals that a fault names.
  private func explain(_ fault: String, _ arrivals: [StormySink.Arrival]) async throws {
    let device = String(fault.prefix { $0 != ":" })
    let ids = fault.matches(of: /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/).map { String($0.output.0) }
    let here = arrivals.filter { $0.device == device && ids.contains($0.id) }
    for arrival in here { print("\(device) \(arrival.id) arrived at", arrival.date) }
    guard let id = ids.first, let first = here.map(\.date).min() else { return }
    let (from, to) = (Timestamp(first).adding(seconds: -8), Timestamp(first).adding(seconds: 4))
    let rows = try await app.database.rows(
      """
      SELECT concat_ws(' ', s.at::time(3), left(s.notification_id::text, 13), s.state)
      FROM story AS s
      JOIN (
        SELECT t.device_id, t.subject_id FROM story AS t JOIN devices AS d ON d.id = t.device_id
        WHERE t.notification_id = \(UUID(uuidString: id)) AND d.token LIKE \("%" + device)
        LIMIT 1
      ) AS line ON line.device_id = s.device_id AND line.subject_id = s.subject_id
      WHERE s.at BETWEEN \(from) AND \(to)
      ORDER BY s.at
      LIMIT 300
      """)
    for row in rows { print("  \(try row[0] as String)") }
  }

  /// - Parameter here: all arrivals at the device, in order.
  private static func faults(
    of line: [Filed], _ arrivals: [String: [StormySink.Arrival]], _ here: [StormySink.Arrival], _ takenOver: Set<String>
  ) -> [String] {
    var faults: [String] = []
    let places = Dictionary(line.enumerated().map { ($1.id, $0) }) { first, _ in first }

    /// Whether a later edit was delivered for an earlier one. All between the two must be edits.
    func covers(_ later: Int, _ earlier: Int) -> Bool {
      line[earlier...later].allSatisfy(\.isEdit)
        && arrivals[line[later].id, default: []].contains { arrival in
          Storm.fields(in: arrival.json["data"]).isSuperset(of: line[earlier].changes)
        }
    }

    for (place, one) in line.enumerated() {
      for arrival in arrivals[one.id] ?? [] {
        let received = arrival.json["data"]
        let isRight =
          one.isEdit
          ? received["eventId"] == one.payload["eventId"]
            && fields(in: received).isSuperset(of: one.changes)
          : received == one.payload
        if arrival.json["type"].string != one.type || !isRight { faults.append("\(one.id) has the wrong content") }
      }
      guard arrivals[one.id] == nil else { continue }
      let next = (place..<line.count).first { arrivals[line[$0].id] != nil }
      if next.map({ covers($0, place) }) != true { faults.append("\(one.id) of \(one.type) is lost") }
    }

    var seen: [Int] = []
    /// The fields that have arrived so far under the id of each.
    var received: [Int: Set<String>] = [:]
    for arrival in here {
      guard let place = places[arrival.id] else { continue }
      if !seen.contains(place) {
        // An edit that was delivered as part of a later one may be sent again by another worker, alone.
        let isRepeated =
          takenOver.contains(arrival.id)
          && seen.contains { later in
            later > place && line[place...later].allSatisfy(\.isEdit)
              && received[later, default: []].isSuperset(of: line[place].changes)
          }
        if let later = seen.first(where: { $0 > place }), !isRepeated {
          let story = here.compactMap { places[$0.id] }.map { "\($0)\(line[$0].isEdit ? "e" : "")" }
          faults.append(
            "\(arrival.id), the \(place)th, is behind \(line[later].id), the \(later)th: \(story.joined(separator: " "))"
          )
        }
        seen.append(place)
      }
      received[place, default: []].formUnion(fields(in: arrival.json["data"]))
    }
    return faults
  }
}
