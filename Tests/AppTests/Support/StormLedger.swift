import Foundation
import Postgres
import Testing

@testable import App

/// What arrived, held against what was filed.
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

  /// Why something may have been sent twice.
  struct Excuses: Sendable {
    /// Notifications whose rows were claimed from a claim that had run out.
    let takenOver: Set<String>
    /// Device and notification of attempts that a worker calls failed.
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

  /// The fields that a payload says have changed.
  private static func fields(in payload: JSON) -> Set<String> {
    Set(payload["changes"].array.compactMap { $0["field"].string })
  }

  /// By recipient and subject, in order: the order of the inbox.
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

  /// Everything that was filed arrived at each of the recipient's devices, signed for it, and said what was filed, the
  /// first time in the order of its subject. It arrived again only where the time before was not accepted, as far as its
  /// worker knew, or its row was taken over.
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
        var found = here.filter { !$0.isSigned(with: secret) }.map { "the signature of \($0.id)" }
        for (id, times) in byID where !excuse.takenOver.contains(id) && !excuse.failed.contains([device, id]) {
          if times.dropLast().contains(where: \.isAccepted) { found.append("\(id) was accepted before") }
        }
        let strangers = Set(byID.keys).subtracting(own.joined().map(\.id))
        found += strangers.map { "\($0) is for nobody here" }
        for line in own { found += Self.faults(of: line, byID, here, excuse.takenOver) }
        faults += found.map { "\(device): \($0)" }
      }
    }
    if known != arrivals.count { faults.append("\(arrivals.count - known) arrived where nobody is") }
    #expect(faults.isEmpty, "seed \(seed), \(faults.count) faults: \(faults.prefix(20))")
  }

  /// - Parameter here: all that arrived at the device, in order.
  private static func faults(
    of line: [Filed], _ arrivals: [String: [StormySink.Arrival]], _ here: [StormySink.Arrival], _ takenOver: Set<String>
  ) -> [String] {
    var faults: [String] = []
    let places = Dictionary(line.enumerated().map { ($1.id, $0) }) { first, _ in first }

    /// Whether one edit was told in another's name, which came after it, with nothing else between the two.
    func tells(_ later: Int, of earlier: Int) -> Bool {
      line[earlier...later].allSatisfy(\.isEdit)
        && arrivals[line[later].id, default: []].contains { arrival in
          Storm.fields(in: arrival.json["data"]).isSuperset(of: line[earlier].changes)
        }
    }

    for (place, one) in line.enumerated() {
      for arrival in arrivals[one.id] ?? [] {
        let told = arrival.json["data"]
        let isRight =
          one.isEdit
          ? told["eventId"] == one.payload["eventId"]
            && fields(in: told).isSuperset(of: one.changes)
          : told == one.payload
        if arrival.json["type"].string != one.type || !isRight { faults.append("\(one.id) says something else") }
      }
      guard arrivals[one.id] == nil else { continue }
      let next = (place..<line.count).first { arrivals[line[$0].id] != nil }
      if next.map({ tells($0, of: place) }) != true { faults.append("\(one.id) of \(one.type) is lost") }
    }

    var seen: [Int] = []
    /// What has been told so far in the name of each.
    var told: [Int: Set<String>] = [:]
    for arrival in here {
      guard let place = places[arrival.id] else { continue }
      if !seen.contains(place) {
        // Sent once more by another worker, it may come alone that was told in a later one's name before.
        let isRepeated =
          takenOver.contains(arrival.id)
          && seen.contains { later in
            later > place && line[place...later].allSatisfy(\.isEdit)
              && told[later, default: []].isSuperset(of: line[place].changes)
          }
        if let later = seen.first(where: { $0 > place }), !isRepeated {
          let story = here.compactMap { places[$0.id] }.map { "\($0)\(line[$0].isEdit ? "e" : "")" }
          faults.append("\(arrival.id), the \(place)th, is behind the \(later)th: \(story.joined(separator: " "))")
        }
        seen.append(place)
      }
      told[place, default: []].formUnion(fields(in: arrival.json["data"]))
    }
    return faults
  }
}
