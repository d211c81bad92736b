import HTTPServer
import Postgres

struct ReportRoutes {
  let dependencies: Dependencies

  @Sendable func report(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let draft = try await request.read { fields -> Report.Draft in
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
      return Report.Draft(
        subject: given.first ?? .event(.new()),
        reason: fields.required(Body.ReportDraft.reason), text: fields.optional(Body.ReportDraft.text))
    }
    // Repeated reports take no lock on the reported user, and write nothing.
    if context.idempotent == nil,
      let open = try await Report.open(draft.subject, by: me, in: dependencies.database)
    {
      return .json(open)
    }
    let owner = try await draft.subject.owner(for: me, in: dependencies.database)
    return try await dependencies.respond(to: context, at: [.user(me), .user(owner ?? me)]) {
      let (report, isNew) = try await Report.file(
        draft, of: owner, by: me, isLimited: dependencies.throttle.isOn, in: $0)
      return .json(report, status: isNew ? .created : .ok)
    }
  }
}

extension Report: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.report(
      id: id, userId: userID, eventId: eventID, guestId: guestID,
      reason: reason, text: text, createdAt: createdAt)
  }
}
