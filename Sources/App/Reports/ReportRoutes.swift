import HTTPServer
import Postgres

struct ReportRoutes {
  let dependencies: Dependencies

  @Sendable func report(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let (given, draft) = try await request.read { fields -> (Report.ID?, Report.Draft) in
      let id = fields.optional(Body.ReportDraft.id)
      let user = fields.optional(Body.ReportDraft.userId)
      let event = fields.optional(Body.ReportDraft.eventId)
      let guest = fields.optional(Body.ReportDraft.guestId)
      let subjects = [
        ("userId", user.map(Report.Subject.user)), ("eventId", event.map(Report.Subject.event)),
        ("guestId", guest.map(Report.Subject.guest)),
      ]
      let given = subjects.compactMap(\.1)
      if given.count != 1 {
        for (name, subject) in subjects where given.isEmpty || subject != nil {
          fields.note(
            name, subject == nil ? .required : .notAllowed, "exactly one of userId, eventId and guestId must be given")
        }
      }
      let draft = Report.Draft(
        subject: given.first ?? .event(.new()),
        reason: fields.required(Body.ReportDraft.reason), text: fields.optional(Body.ReportDraft.text))
      return (id, draft)
    }
    let id = NewID(given)
    // Repeated reports take no lock on the reported user, and change nothing. With an Idempotency-Key, their responses
    // must also be stored.
    if id.isGiven, let sent = try await Report.sent(id.value, by: me, in: dependencies.database) {
      guard context.idempotent != nil else { return try await confirmed(sent) }
      return try await dependencies.respond(to: context, at: [.user(me)]) { _ in .json(sent) }
    }
    if context.idempotent == nil,
      let open = try await Report.open(draft.subject, by: me, in: dependencies.database)
    {
      return try await confirmed(open)
    }
    let owner = try await draft.subject.owner(for: me, in: dependencies.database)
    return try await dependencies.respond(to: context, at: [.user(me), .user(owner ?? me)]) {
      let (report, isNew) = try await Report.file(
        id, draft, of: owner, by: me, isLimited: dependencies.throttle.isOn, in: $0)
      return .json(report, status: isNew ? .created : .ok)
    }
  }

  private func confirmed(_ report: Report) async throws -> Response {
    try await dependencies.database.confirm("SELECT FROM reports WHERE id = \(report.id)")
    return .json(report)
  }
}

extension Report: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.report(
      id: id, userId: userID, eventId: eventID, guestId: guestID,
      reason: reason, text: text, createdAt: createdAt)
  }
}
