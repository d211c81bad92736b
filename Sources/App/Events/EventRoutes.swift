import Foundation
import HTTPTypes
import Hummingbird
import Postgres

struct EventRoutes {
  private let dependencies: Dependencies
  private let database: Database

  init(_ dependencies: Dependencies) {
    self.dependencies = dependencies
    database = dependencies.database
  }

  func add(to routes: Routes) {
    routes.get("events", use: list)
    routes.post("events", use: create)
    routes.get("events/{id}", use: get)
    routes.patch("events/{id}", use: edit)
    routes.delete("events/{id}", use: cancel)
    routes.get("events/{id}/calendar.ics", use: calendar)
  }

  private enum When: String, CaseIterable {
    case past
  }

  @Sendable private func list(_ request: Request, _ context: Context) async throws -> Response {
    let (page, when) = try request.query { ($0.page(), $0.word("when", of: When.allCases)) }
    let archived = when == .past
    if !archived, let unchanged = try await request.unchanged(.events, of: context.user, in: database) {
      return unchanged
    }
    return .list(try await Event.list(archived: archived, of: context.user, page: page, in: database)) {
      EventJSON(event: $0, participants: nil)
    }
  }

  @Sendable private func create(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let (plan, guests) = try await request.read { fields in
      let plan = Event.Plan(
        title: fields.required("title", .line(1...200)), note: fields.optional("note", .text(0...2000)),
        startTime: fields.required("startTime", .time), endTime: fields.optional("endTime", .time),
        timeZone: fields.required("timeZone", .timeZone), location: fields.optional("location", .location),
        capacity: fields.optional("capacity", .capacity))
      let guests: [User.ID] = fields.optional("inviteeIds", .list(of: .id(), atMost: Invitation.maximumBatch)) ?? []
      if !plan.endsAfterStart, !fields.hasError(in: "startTime", "endTime") {
        fields.note("endTime", Event.Plan.endRule)
      }
      return (plan, guests)
    }
    let id = Event.ID.new()
    let rows = try await dependencies.change(at: .user(me), thenReading: Event.Detail.query(id, for: me)) { change in
      try await Event.create(id, plan, inviting: guests, by: me, in: change)
    }
    var response = Response.event(try Event.Detail(rows: rows), status: .created)
    response.headers[.location] = "/api/v1/events/\(id)"
    return response
  }

  @Sendable private func get(_ request: Request, _ context: Context) async throws -> Response {
    .event(
      try await Event.find(try context.id("id", else: .eventNotFound), for: try context.user, in: database))
  }

  @Sendable private func calendar(_ request: Request, _ context: Context) async throws -> Response {
    let id: Event.ID = try context.id("id", else: .eventNotFound)
    return .calendar(try await Event.find(withoutGuests: id, for: try context.user, in: database))
  }

  @Sendable private func edit(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let id: Event.ID = try context.id("id", else: .eventNotFound)
    let version = request.ifMatch()
    let edit = try await request.read { fields in
      PlanEdit(
        title: fields.edit("title", .line(1...200)), note: fields.clearableEdit("note", .text(0...2000)),
        startTime: fields.edit("startTime", .time), endTime: fields.clearableEdit("endTime", .time),
        timeZone: fields.edit("timeZone", .timeZone), location: fields.clearableEdit("location", .location),
        capacity: fields.clearableEdit("capacity", .capacity))
    }
    return .event(
      try await dependencies.change(of: id, by: me) { change in
        try await Event.edit(id, by: me, ifVersion: version, in: change) { old in
          let new = edit.applied(to: old)
          guard new.endsAfterStart else { throw AppError.invalid("endTime", Event.Plan.endRule) }
          return new
        }
      })
  }

  @Sendable private func cancel(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let id: Event.ID = try context.id("id", else: .eventNotFound)
    let version = request.ifMatch()
    return .event(
      try await dependencies.change(of: id, by: me) { change in
        try await Event.cancel(id, by: me, ifVersion: version, in: change)
      })
  }
}

/// What a PATCH changes of a plan.
private struct PlanEdit: Sendable {
  let title: Edit<String>
  let note: Edit<String?>
  let startTime: Edit<Timestamp>
  let endTime: Edit<Timestamp?>
  let timeZone: Edit<String>
  let location: Edit<Event.Location?>
  let capacity: Edit<Int?>

  func applied(to old: Event.Plan) -> Event.Plan {
    Event.Plan(
      title: title.applied(to: old.title), note: note.applied(to: old.note),
      startTime: startTime.applied(to: old.startTime), endTime: endTime.applied(to: old.endTime),
      timeZone: timeZone.applied(to: old.timeZone), location: location.applied(to: old.location),
      capacity: capacity.applied(to: old.capacity))
  }
}

extension Response {
  /// A single event with its first participants. Its ETag is its version.
  static func event(
    _ found: Event.Detail, status: HTTPResponse.Status = .ok
  ) -> Response {
    var response = Response.json(EventJSON(event: found.event, participants: found.participants), status: status)
    response.headers[.eTag] = "\"\(found.event.version)\""
    return response
  }
}

extension Request {
  /// The version that `If-Match` names, as it stands in an ETag of ours; nil for none or any. What cannot be one is 0,
  /// which no event has.
  fileprivate func ifMatch() -> Int? {
    guard let text = headers[.ifMatch], text != "*" else { return nil }
    return Int(text.trimmingCharacters(in: CharacterSet(charactersIn: "\" "))) ?? 0
  }
}

extension Event.Plan {
  fileprivate static let endRule = "must be after startTime"

  fileprivate var endsAfterStart: Bool { endTime.map { $0 > startTime } ?? true }
}

extension Fields.Rule where Value == String {
  /// A name of the IANA database, such as `Europe/Berlin`; an alias is as good. Foundation takes more: offsets such as
  /// GMT+2, which know nothing of summer time, and abbreviations, which mean several zones.
  fileprivate static var timeZone: Self {
    text(1...64).and("must be an IANA time zone such as Europe/Berlin") { name in
      if knownTimeZones.contains(name) { return true }
      let isWord = name.utf8.allSatisfy {
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_+-".utf8.contains($0)
      }
      return isWord && name.contains("/") && TimeZone(identifier: name) != nil
    }
  }
}

private let knownTimeZones = Set(TimeZone.knownTimeZoneIdentifiers).union(["UTC"])

extension Fields.Rule where Value == Int {
  fileprivate static var capacity: Self { integer(1...10_000) }
}

extension Fields.Rule where Value == Event.Location {
  fileprivate static var location: Self {
    object(Event.Location(name: "", latitude: nil, longitude: nil)) { fields in
      let location = Event.Location(
        name: fields.required("name", .line(1...200)), latitude: fields.optional("latitude", .number(-90...90)),
        longitude: fields.optional("longitude", .number(-180...180)))
      if (location.latitude == nil) != (location.longitude == nil) {
        fields.note(location.latitude == nil ? "latitude" : "longitude", "is required beside the other coordinate")
      }
      return location
    }
  }
}

/// An event as clients see it.
struct EventJSON: JSONWritable {
  let event: Event
  /// Nil in lists.
  let participants: [Guest]?

  /// Lists of guests leave the counts out where there are too many to tell everybody of each answer.
  private var showsCounts: Bool {
    participants != nil || event.myStatus == "creator" || event.counts.total <= Event.maximumCounted
  }

  func write(to json: inout JSONWriter) {
    let plan = event.plan
    json.object {
      $0.member("id", event.id)
      $0.member("title", plan.title)
      $0.member("note", plan.note)
      $0.member("startTime", plan.startTime)
      $0.member("endTime", plan.endTime)
      $0.member("timeZone", plan.timeZone)
      $0.member("location", plan.location)
      $0.member("capacity", plan.capacity)
      $0.member("status", event.status.rawValue)
      $0.member("creator", event.creator)
      $0.member("version", event.version)
      $0.member("createdAt", event.createdAt)
      $0.member("updatedAt", event.updatedAt)
      $0.member("myStatus", event.myStatus)
      if showsCounts { $0.member("counts", event.counts) }
      if let participants { $0.member("participants", participants) }
    }
  }
}

extension Event.Location: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("name", name)
      $0.member("latitude", latitude)
      $0.member("longitude", longitude)
    }
  }
}

extension Event.Counts: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("invited", invited)
      $0.member("going", going)
      $0.member("maybe", maybe)
      $0.member("declined", declined)
      $0.member("waitlisted", waitlisted)
    }
  }
}
