import HTTPServer
import Postgres

struct EventRoutes {
  let dependencies: Dependencies

  private var database: Database { dependencies.database }

  private enum When: String, CaseIterable {
    case past
  }

  @Sendable func list(_ request: Request, _ context: Context) async throws -> Response {
    let (ids, page, when, include) = try request.query { fields -> ([Event.ID]?, PageRequest, When?, ListInclude?) in
      let include = fields.include(.participants, .digests)
      if let ids: [Event.ID] = fields.ids() {
        fields.refuseDigests(include, if: true)
        return (ids, PageRequest(), nil, include)
      }
      let when = fields.word("when", of: When.allCases)
      fields.refuseDigests(include, if: when != nil)
      return (nil, fields.page(), when, include)
    }
    let me = try context.user
    let showsParticipants = include == .participants
    if let ids {
      return .list(
        List(onlyPage: try await Event.these(ids, for: me, showsParticipants: showsParticipants, in: database)))
    }
    let archived = when == .past
    return try await request.unlessUnchanged(archived || include != nil ? nil : .events, of: me, in: database) {
      .list(
        try await Event.list(
          archived: archived, of: me, showsParticipants: showsParticipants, page: page, in: database),
        digests: dependencies.digests(if: include))
    }
  }

  @Sendable func create(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let zones = dependencies.zones
    let (given, plan, offsets, guests) = try await request.read { fields in
      let given = fields.optional(Body.EventDraft.id)
      let (plan, offsets) = try PlanEdit(from: &fields, in: .post, zones: zones).made(in: zones)
      let guests = fields.optional(Body.EventDraft.inviteeIds) ?? []
      fields.check(plan)
      return (given, plan, offsets, guests)
    }
    let id = NewID(given)
    var isNew = false
    return try await dependencies.respond(
      to: context, of: id.value, at: [.user(me)], about: guests
    ) {
      isNew = try await Event.create(id, plan, offsets, inviting: guests, by: me, in: $0)
    } response: {
      .created($0, isNew: isNew)
    }
  }

  @Sendable func get(_ request: Request, _ context: Context) async throws -> Response {
    let include = try request.query { $0.include(.guests) }
    let id: Event.ID = try context.id("id", else: .eventNotFound)
    let me = try context.user
    guard include == .guests else { return .event(try await Event.find(id, for: me, in: database)) }
    let digests = dependencies.itemDigests
    if request.headers[.ifNoneMatch] != nil,
      let tag = try await Event.tag(of: id, for: me, digests: digests, in: database), request.alreadyHas(tag)
    {
      return Response(status: .notModified, headers: [.eTag: tag])
    }
    let (event, tag) = try await Event.find(withGuests: id, for: me, digests: digests, in: database)
    return .event(event, tag: tag)
  }

  @Sendable func calendar(_ request: Request, _ context: Context) async throws -> Response {
    let id: Event.ID = try context.id("id", else: .eventNotFound)
    return .calendar(
      try await Event.find(withoutGuests: id, for: try context.user, in: database), zones: dependencies.zones)
  }

  @Sendable func edit(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let id: Event.ID = try context.id("id", else: .eventNotFound)
    let versions = request.ifMatch()?.versions
    let zones = dependencies.zones
    let edit = try await request.read { PlanEdit(from: &$0, in: .patch, zones: zones) }
    return try await dependencies.respond(to: context, of: id) { change in
      try await Event.edit(id, by: me, ifVersionIn: versions, in: change) { old, oldOffsets in
        let (new, offsets) = try edit.applied(to: old, oldOffsets, in: zones)
        try new.checkRules()
        return (new, offsets)
      }
    }
  }

  @Sendable func cancel(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let id: Event.ID = try context.id("id", else: .eventNotFound)
    let versions = request.ifMatch()?.versions
    return try await dependencies.respond(to: context, of: id) {
      try await Event.cancel(id, by: me, ifVersionIn: versions, in: $0)
    }
  }
}

extension Response {
  /// A single event with its first participants. Its ETag is its version.
  static func event(_ event: Event, status: HTTPResponse.Status = .ok) -> Response {
    .event(event, status: status, tag: "\"\(event.version)\"")
  }

  fileprivate static func event(_ event: Event, status: HTTPResponse.Status = .ok, tag: String?) -> Response {
    var response = Response.json(event, status: status)
    if let tag { response.headers.append(HTTPField(name: .eTag, value: tag)) }
    return response
  }

  /// An event that the caller has just created, or had created before with the same id.
  static func created(_ event: Event, isNew: Bool) -> Response {
    var response = Response.event(event, status: isNew ? .created : .ok)
    response.headers[.location] = "/api/v1/events/\(event.id)"
    return response
  }
}

extension EntityTags {
  /// The versions of events.
  fileprivate var versions: Set<Int> {
    Set(values.compactMap { tag in Int(tag).flatMap { "\($0)".hasSameBytes(as: tag) ? $0 : nil } })
  }
}
