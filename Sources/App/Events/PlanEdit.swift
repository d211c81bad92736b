import Postgres

/// The changes of a PATCH to a plan.
struct PlanEdit: Sendable {
  let title: Edit<String>
  let note: Edit<String?>
  let startTime: Edit<Timestamp>
  let endTime: Edit<Timestamp?>
  let timeZone: Edit<String>
  let location: Edit<Event.Location?>
  let capacity: Edit<Int?>
  let answerBy: Edit<Timestamp?>
  let maxPlusOnes: Edit<Int>

  func applied(to old: Event.Plan) -> Event.Plan {
    Event.Plan(
      title: title.applied(to: old.title), note: note.applied(to: old.note),
      startTime: startTime.applied(to: old.startTime), endTime: endTime.applied(to: old.endTime),
      timeZone: timeZone.applied(to: old.timeZone), location: location.applied(to: old.location),
      capacity: capacity.applied(to: old.capacity), answerBy: answerBy.applied(to: old.answerBy),
      maxPlusOnes: maxPlusOnes.applied(to: old.maxPlusOnes))
  }
}
