import Foundation

/// What the service checks before it changes an event.
extension PreviewWorld {
  func checkIsOpen(_ event: Event) throws {
    if past.contains(where: { $0.id == event.id }) {
      throw Problem.preview(.eventArchived, 409, "The event is over and can no longer change.")
    }
    if event.status == .cancelled {
      throw Problem.preview(.eventCancelled, 409, "The event is cancelled and can no longer change.")
    }
  }

  func checkPlusOnes(_ plusOnes: Int?, at event: Event) throws {
    guard let plusOnes, plusOnes > event.maxPlusOnes else { return }
    let problem =
      event.maxPlusOnes == 0
      ? FieldProblem(field: "plusOnes", code: "no-plus-ones", message: "must be 0: this event does not allow plus-ones")
      : FieldProblem(
        field: "plusOnes", code: "out-of-range",
        message: "must be at most \(event.maxPlusOnes): the event's maxPlusOnes")
    throw Problem.preview(.invalidFields, 422, "Some fields are invalid.", errors: [problem])
  }

  func checkIsMine(_ event: Event, _ request: PreviewRequest? = nil) throws {
    guard event.myRole == .creator else {
      throw Problem.preview(.notTheCreator, 403, "Only the creator of the event may do this.")
    }
    try checkIsHosted(event, request)
  }

  func checkIsHosted(_ event: Event, _ request: PreviewRequest? = nil) throws {
    guard event.myRole != .guest else {
      throw Problem.preview(.notAHost, 403, "Only hosts of the event may do this.")
    }
    guard let header = request?.headers["If-Match"] else { return }
    let tags = header.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
    let mine = "\"\(event.version)\""
    if tags.contains(where: { ["*", mine, "W/\(mine)"].contains($0) }) { return }
    throw Problem.preview(.lostUpdate, 412, "The event has changed since you read it. Read it again, then retry.")
  }

  /// The friends with these ids, as invited guests.
  func friends(_ ids: [UUID], field: String) throws -> [Guest] {
    let strangers = ids.enumerated().filter { id in !friends.contains { $0.id == id.element } }.map {
      FieldProblem(field: "\(field)[\($0.offset)]", code: "not-a-friend", message: "is not a friend")
    }
    guard strangers.isEmpty else {
      throw Problem.preview(.invalidFields, 422, "Some fields are invalid.", errors: strangers)
    }
    return friends.filter { ids.contains($0.id) }.map {
      Guest(id: $0.id, user: $0.user, name: $0.user.displayName, status: .invited)
    }
  }

  mutating func change(_ id: UUID, _ body: (inout Event) -> Void) {
    guard let place = events.firstIndex(where: { $0.id == id }) else { return }
    body(&events[place])
  }

  mutating func sortEvents() {
    events.sort { ($0.startTime, $0.id.wire) < ($1.startTime, $1.id.wire) }
  }
}

extension Counts {
  mutating func add(_ number: Int, to status: String) {
    switch status {
    case "invited": invited += number
    case "going": going += number
    case "maybe": maybe += number
    case "declined": declined += number
    case "waitlisted": waitlisted += number
    case "pending": pending += number
    default: break
    }
  }
}

extension Edit {
  /// The value after the edit.
  func applied(to old: Value?) -> Value? {
    switch self {
    case .keep: old
    case .set(let value): value
    case .clear: nil
    }
  }
}
