import HTTPTypes

/// The JSON of an event.
struct EventJSON: JSONWritable {
  let event: Event
  /// Nil in lists.
  let participants: [Guest]?

  /// With too many guests, their lists leave the counts out: each answer would have to touch all these lists.
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
