import Postgres
import Testing

@testable import App

/// Compares all lists of all users and the queue with ``Model``, and each user's ``DeltaCopy`` and ``PartsCopy`` of each
/// collection with its GET. A list that changes must get a new stamp.
struct ModelComparison {
  /// The service differs from the model or from itself.
  struct Deviation: Error {
    let description: String

    init(_ description: String) { self.description = description }
  }

  /// A GET of one user.
  private struct Reading: Sendable {
    let person: Int
    let path: String
    let listing: Listing
    /// Nil if the response must be 404.
    let expected: [String]?
    var isCollection = false
  }

  /// The last response that a user got.
  private struct Copy {
    let body: String
    let lines: [String]
    let stamp: String
  }

  private let app: TestApp
  private let deltaMethod: DeltaCopy.Method
  private var model = Model()
  private var phones: [Phone] = []
  private var copies: [String: Copy] = [:]
  private var deltas: [Int: [App.Collection: DeltaCopy]] = [:]
  private var parts: [Int: [App.Collection: PartsCopy]] = [:]

  init(_ app: TestApp, by deltaMethod: DeltaCopy.Method) {
    self.app = app
    self.deltaMethod = deltaMethod
  }

  /// - Parameter events: the events to check one by one, in addition to all lists.
  /// - Throws: ``Deviation``
  mutating func check(_ model: Model, _ phones: [Phone], _ events: [Int]) async throws {
    (self.model, self.phones) = (model, phones)
    try await checkQueue()
    let responses = try await read(model.present.map { readings(of: $0, events) })
    for (reading, response) in responses { try compare(reading, response) }
    try await catchUp()
    for (reading, response) in responses { try compareDelta(reading, response) }
  }

  private func readings(of person: Int, _ events: [Int]) -> [Reading] {
    var readings = Phone.everyCollection.map { collection in
      let (listing, expected) = model.list(of: collection, for: person)
      return Reading(
        person: person, path: Phone.wholePath(of: collection), listing: listing, expected: expected, isCollection: true)
    }
    // Neither this list nor the archive is a collection, and so they have no stamp.
    readings.append(
      Reading(
        person: person, path: "friend-requests?direction=filtered&limit=100", listing: .requests,
        expected: model.requestList(of: person, .filtered)))
    let archive = model.eventList(of: person, archived: true)
    readings.append(
      Reading(person: person, path: "events?when=past&limit=100", listing: .events, expected: archive))
    for event in events {
      let (path, view) = ("events/\(model.events[event].id)", model.view(of: event, for: person))
      readings.append(Reading(person: person, path: path, listing: .event, expected: view))
      let guests = model.guestList(of: event, for: person)
      readings.append(
        Reading(person: person, path: "\(path)/invitations?limit=100", listing: .guests, expected: guests))
    }
    return readings
  }

  /// Reads for all users at the same time.
  private func read(_ readings: [[Reading]]) async throws -> [(Reading, APIResponse)] {
    let phones = phones
    return try await withThrowingTaskGroup(of: [(Reading, APIResponse)].self) { group in
      for ones in readings {
        group.addTask {
          var responses: [(Reading, APIResponse)] = []
          for reading in ones {
            let response = try await phones[reading.person].send("GET", reading.path)
            responses.append((reading, response))
          }
          return responses
        }
      }
      var all: [(Reading, APIResponse)] = []
      for try await responses in group { all += responses }
      return all
    }
  }

  private mutating func compare(_ reading: Reading, _ response: APIResponse) throws {
    let what = "\(reading.path) for \(model.people[reading.person].username)"
    let status = reading.expected == nil ? 404 : 200
    guard response.status == status else {
      throw Deviation("\(what) is \(response.status), not \(status): \(response.body)")
    }
    guard let expected = reading.expected else { return }
    let key = "\(reading.person) \(reading.path)"
    let copy = copies[key]
    if let copy, copy.body == response.body, copy.lines == expected { return }
    let json = response.json
    let lines = reading.listing.lines(of: json)
    guard lines == expected else {
      throw Deviation(
        """
        \(what) differs from the model. It is
        \(lines.joined(separator: "\n"))
        but should be
        \(expected.joined(separator: "\n"))
        """)
    }
    let stamp = json["timestamp"].string ?? ""
    if reading.isCollection {
      guard !stamp.isEmpty else { throw Deviation("\(what) has no stamp") }
      // The body contains the stamp, so a different body with the same stamp means that an item differs.
      if let copy, copy.body != response.body, copy.stamp >= stamp {
        throw Deviation(
          "\(what) has changed, but its stamp has not moved. It was\n\(copy.body)\nand is\n\(response.body)")
      }
    }
    copies[key] = Copy(body: response.body, lines: lines, stamp: stamp)
  }

  /// Brings all users' copies up to date by what has changed, at the same time.
  private mutating func catchUp() async throws {
    typealias Copies = (Int, [App.Collection: DeltaCopy], [App.Collection: PartsCopy])
    let (phones, deltas, parts, method) = (phones, deltas, parts, deltaMethod)
    let caughtUp = try await withThrowingTaskGroup(of: Copies.self) { group in
      for person in model.present {
        group.addTask {
          var copies = deltas[person, default: [:]]
          var others = parts[person, default: [:]]
          try await phones[person].catchUp(&copies, by: method)
          try await phones[person].catchUp(&others)
          return (person, copies, others)
        }
      }
      return try await group.reduce(into: [Copies]()) { $0.append($1) }
    }
    self.deltas = Dictionary(uniqueKeysWithValues: caughtUp.map { ($0.0, $0.1) })
    self.parts = Dictionary(uniqueKeysWithValues: caughtUp.map { ($0.0, $0.2) })
  }

  private func compareDelta(_ reading: Reading, _ response: APIResponse) throws {
    let collection = Phone.everyCollection.first { Phone.wholePath(of: $0) == reading.path }
    guard let collection else { return }
    let now = try HeldCopy(collection, response)
    for held in [deltas[reading.person]?[collection]?.held, parts[reading.person]?[collection]?.held]
    where held != now {
      throw Deviation(
        """
        \(collection) of \(model.people[reading.person].username), kept by its changes, differs from its GET. It is
        \(held?.stamp ?? "") \(held?.items ?? "")
        but should be
        \(now.stamp) \(now.items)
        """)
    }
  }

  private func checkQueue() async throws {
    // Fan-out skips deleted recipients.
    let present = Set(model.present.map { model.people[$0].id })
    let lines = try await app.queuedNotices().filter { present.contains($0.recipient) }.map { queued in
      guard queued.payload["type"].string == queued.type, queued.payload["message"].string?.isEmpty == false else {
        throw Deviation("\(queued.payload) is not a payload of \(queued.type)")
      }
      return Listing.notice(queued.type, for: queued.recipient, Listing.members(of: queued.payload))
    }.sorted()
    guard lines == model.queueLines else {
      throw Deviation(
        """
        The queue differs from the model. It is
        \(lines.joined(separator: "\n"))
        but should be
        \(model.queueLines.joined(separator: "\n"))
        """)
    }
  }
}
